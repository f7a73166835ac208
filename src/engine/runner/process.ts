/**
 * The runner as a child process: killing it frees every byte, and its crash cannot take the server down. It ends with
 * its parent.
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

/**
 * A lower priority than the server's, for which many requests wait; on an otherwise idle machine the runner still gets
 * all processors.
 */
const NICER = 5;
const NICEST = 19;

/** Serves the process that started this one, over the spawn channel. */
export function startRunnerProcess(channel: Channel): void {
  dieWithParent();
  process.on("SIGINT", () => {}); // a terminal's Ctrl+C reaches this process too, but the server decides when it ends
  collectWhenIdle();
  setPriority(Math.min(getPriority() + NICER, NICEST)); // also for threads started after this
  dieBeforeParent();
  startRunner(channel, {
    loop: systemLoop(),
    open: mapFile,
    chooseBackend,
    openFiles: async (files, options) =>
      (await import("../backends/host/transformers/index.ts")).openTransformers(files, options),
    decodeImage,
    decodeAudio: async (bytes, options) => (await import("../audio/decode.ts")).decodeAudio(bytes, options),
    grammarThread: openGrammarThread,
    ...(process.platform === "linux" && { freeBytes: () => availableMemory({ swaps: true }) }),
    gpuFreeBytes: async (wanted) => (await import("../backends/host/gpu-free.ts")).gpuFreeBytes(wanted),
    tuningsIn: tuningFile,
    snapshotsOf,
  });
  void import("../backends/host/simd.ts"); // most models use it, so a spare process loads it in advance
}
