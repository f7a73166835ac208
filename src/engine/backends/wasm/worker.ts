/** A thread of a session in a process; pages start their own script again instead. */
import { runThread, type ThreadOrders } from "./threads.ts";

declare const self: Worker;

self.onmessage = ({ data }: MessageEvent<ThreadOrders>) => {
  runThread(data);
  self.postMessage("left");
};
