/**
 * One child with a device for all test files of a process that only compute: a kernel that several of them use is
 * compiled once. `test/run.ts` puts those files into one process. A file that measures the child itself, or may break
 * it, starts its own with `startWebGpu`.
 */
import { afterLastTest } from "../../../cleanups.ts";
import { startWebGpu, type BackendChild } from "../child.ts";
import { swiftShaderEnv } from "./swiftshader.ts";

let shared: Promise<BackendChild> | undefined;

/** The child, started on first use. It ends after the last test of this process. */
export function sharedWebGpu(): Promise<BackendChild> {
  return (shared ??= start());
}

async function start(): Promise<BackendChild> {
  const child = startWebGpu(await swiftShaderEnv());
  afterLastTest(() => child.stop());
  return child;
}
