/**
 * The child process of a self-test: computes the results of a kernel library and prints them. A damaged library, or one
 * built for another processor, may end or hang this process, or write random memory; so its parent decides.
 */
import { writeSync } from "node:fs";
import { messageOf } from "../../../base/index.ts";
import { dieWithParent } from "../../../base/system.ts";
import { answerOf } from "../selftest/answer.ts";
import { makeSession } from "../simd/session.ts";
import { WASM_LEVEL } from "./simd-library.ts";
import { makeNativeMemory } from "./simd-memory.ts";
import { startThreadPool } from "./simd-workers.ts";
import { sleepFunctions } from "./sleep-functions.ts";
import { BEGUN, type TestedLevel } from "./trust.ts";

/** Prints `begun`, then the answer or what went wrong, each as a line. @param order a `TestedLevel`, as JSON */
export async function runSelftest(order: string): Promise<void> {
  dieWithParent(); // its parent ends a library that never returns
  const level = JSON.parse(order) as TestedLevel; // this same program wrote it
  print(BEGUN);
  print(await answerOfLibrary(level).catch(messageOf));
  process.exit(); // ends threads that the library has left running
}

function answerOfLibrary({ level, file, features, words, panelRows }: TestedLevel): Promise<string> {
  if (level === WASM_LEVEL) return answerOfWasm(file);
  return answerOf(async (sheet, mode, threads) => {
    const start = (header: number) => startThreadPool(file, header, { threads });
    const engine = { backend: "simd", level, build: "", features, threads, words, panelRows, start };
    const options = { ...sheet.options, ...mode, threads, cacheDir: undefined };
    return makeSession(sheet.program, options, { ...engine, memory: makeNativeMemory(), sleep: sleepFunctions() });
  });
}

async function answerOfWasm(file: string): Promise<string> {
  const backend = (await import("./wasm.ts")).makeHostWasm(() => file);
  return answerOf((sheet, mode, threads) =>
    backend.load(sheet.program, { ...sheet.options, ...mode, threads, cacheDir: undefined }),
  );
}

/** Prints without a buffer, whose content would be lost if the library ended this process. */
const print = (line: string): void => void writeSync(1, `${line}\n`);
