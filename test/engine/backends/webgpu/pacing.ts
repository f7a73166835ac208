/** Watches the event loop while a device works; pace.test.ts starts it and reads its output. */
import { systemLoop } from "../../../../src/engine/batching/event-loop.ts";
import { dawn } from "../../../../src/engine/backends/host/dawn.ts";
import { openDevice } from "../../../../src/engine/backends/webgpu/device.ts";

export interface Pacing {
  /** True if the global `setImmediate` was the system's at every look. */
  readonly own: boolean;
  /** Number of polls of the device, and their duration. */
  readonly looks: number;
  readonly waitedMs: number;
  /** Median duration of a turn of the event loop meanwhile. */
  readonly turnMs: number;
}

const immediate = globalThis.setImmediate;
let looks = 0;
const counting = (run: () => void): unknown => {
  looks++;
  return immediate(run);
};
globalThis.setImmediate = Object.assign(counting, immediate) as typeof immediate; // before the device is opened
const own = globalThis.setImmediate;

const device = await openDevice(dawn());
const loop = systemLoop();
looks = 0;
const started = performance.now();
let done = false;
const work = device.pipeline("matmul", ["q4_K"]).finally(() => (done = true)); // some hundred milliseconds of compiling
const turns: number[] = [];
let isOwn = true;
let turned = 0;
while (!done) {
  await Bun.sleep(5);
  const from = performance.now();
  await loop.nextTurn();
  turned++;
  turns.push(performance.now() - from);
  isOwn &&= globalThis.setImmediate === own;
}
await work;
const waitedMs = performance.now() - started;
turns.sort((a, b) => a - b);
const turnMs = turns[Math.floor(turns.length / 2)]!;
console.log(JSON.stringify({ own: isOwn, looks: looks - turned, waitedMs, turnMs } satisfies Pacing));
process.exit();
