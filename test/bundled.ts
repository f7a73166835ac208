/**
 * Programs that a test starts many times, each bundled into one file: a program of many modules takes twice as long to
 * start.
 */
import { mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { afterLastTest } from "./cleanups.ts";

/** @param entry path of a module @returns that of a file to start in its place */
export async function bundled(entry: string): Promise<string> {
  const folder = mkdtempSync(join(tmpdir(), "hearth-bundled-"));
  afterLastTest(() => rmSync(folder, { recursive: true, force: true }));
  const { outputs } = await Bun.build({ entrypoints: [entry], outdir: folder, target: "bun" });
  return outputs[0]!.path;
}
