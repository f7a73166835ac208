/** A thread of a session in a process. (Pages start their own script as the Worker.) */
import { runThread, type ThreadOrders } from "./threads.ts";

declare const self: Worker;

self.onmessage = ({ data }: MessageEvent<ThreadOrders>) => {
  runThread(data);
  self.postMessage("left");
};
