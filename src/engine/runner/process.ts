/**
 * The runner as a child process: killing it returns every byte, and nothing it does can take the server down. It ends
 * with its parent.
 */
import { getPriority, setPriority } from "node:os";
import { tuningFile } from "../backends/host/tuning-file.ts";
import { chooseBackend } from "../backends/index.ts";
import { availableMemory, collectWhenIdle, dieBeforeParent, dieWithParent } from "../../base/system.ts";
import { systemLoop } from "../batching/event-loop.ts";
import { mapFile } from "../formats/files/map.ts";
import { snapshotsOf } from "../formats/files/snapshots.ts";
import type { Channel } from "./channel.ts";
import { openGrammarThread } from "./grammar-thread.ts";
import { decodeImage } from "../vision/decode.ts";
import { startRunner } from "./runner.ts";

/** Below the server, which many requests wait for at once; with nothing else to do, a machine gives a runner all. */
const NICER = 5;
const NICEST = 19;

/** Serves the process that started this one, over the spawn channel. */
export function startRunnerProcess(channel: Channel): void {
  dieWithParent();
  collectWhenIdle();
  setPriority(Math.min(getPriority() + NICER, NICEST)); // threads that are made from here on are below the server
  dieBeforeParent();
  startRunner(channel, {
    loop: systemLoop(),
    open: mapFile,
    chooseBackend,
    openFiles: async (files, options) =>
      (await import("../backends/host/transformers/index.ts")).openTransformers(files, options),
    decodeImage,
    grammarThread: openGrammarThread,
    ...(process.platform === "linux" && { freeBytes: () => availableMemory({ swaps: true }) }),
    tuningsIn: tuningFile,
    snapshotsOf,
  });
  void import("../backends/host/simd.ts"); // most models run on it: a process that waits for one has read it
}
