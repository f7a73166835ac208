/** A thread of a session: calls the kernels once per pass, until it is told to leave. */
import { openKernels, type WorkerOrders } from "./workers.ts";

declare const self: Worker;

self.onmessage = ({ data }: MessageEvent<WorkerOrders>) => {
  const { library, header, index, signal } = data;
  const kernels = openKernels(library);
  let seen = 0;
  for (;;) {
    Atomics.wait(signal, 0, seen);
    const now = Atomics.load(signal, 0);
    if (now < 0) break;
    if (now === seen) continue;
    seen = now;
    kernels.run(header, index);
  }
  self.postMessage("left");
};
