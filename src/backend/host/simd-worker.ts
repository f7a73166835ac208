/** A thread of a session. */
import { takePart } from "../simd/crew.ts";
import { openKernels, type WorkerOrders } from "./simd-workers.ts";

declare const self: Worker;

self.onmessage = ({ data }: MessageEvent<WorkerOrders>) => {
  const { library, header, index, signal } = data;
  const kernels = openKernels(library);
  takePart(signal, () => kernels.run(header, index));
  self.postMessage("left");
};
