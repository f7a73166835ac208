/** A thread of a session. */
import { takePart } from "../simd/thread-pool.ts";
import { preferFastCores } from "./fast-cores.ts";
import { makePageFinder } from "./page-finder.ts";
import { openKernels, type ToWorker } from "./simd-workers.ts";

declare const self: Worker;

/** Steps of page mapping between two checks for orders. */
const STEPS_AT_ONCE = 4;

serve(self);

function serve(worker: Worker): void {
  const pages = makePageFinder();
  let isLooking = false;
  const look = async (): Promise<void> => {
    isLooking = true;
    for (let steps = 1; pages.step(); steps++) {
      if (steps % STEPS_AT_ONCE === 0) await new Promise((resolve) => setImmediate(resolve));
    }
    isLooking = false;
  };
  worker.onmessage = ({ data }: MessageEvent<ToWorker>) => {
    if (data === "leave") return void worker.postMessage("left");
    if ("byteLength" in data) {
      pages.add(data);
      if (!isLooking) void look();
      return;
    }
    const { library, header, index, signal } = data;
    const kernels = openKernels(library);
    preferFastCores();
    takePart(signal, () => kernels.run(header, index), pages.step);
    worker.postMessage("left");
  };
}
