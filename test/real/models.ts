/** Models with trained weights, for tests that are skipped by name where those cannot be fetched. */
import { test } from "bun:test";
import { join } from "node:path";
import { messageOf } from "../../src/base/errors.ts";
import { fetchReal, type RealModel } from "../../bench/real/fetch.ts";
import { RECORDED } from "../../bench/real/recorded.ts";

export interface RealFile {
  /** Path for `create`; empty where the model could not be fetched. */
  readonly path: string;
  /** A test that needs it. */
  readonly test: typeof test;
}

export async function realModel(name: RealModel): Promise<RealFile> {
  try {
    return { path: await fetchReal(name), test };
  } catch (error) {
    console.error(`the model '${name}' is not here, its tests are skipped: ${messageOf(error)}`);
    return { path: "", test: test.skip as typeof test };
  }
}

/** A file in recorded/: answers of llama.cpp, or of the program of a model's authors. */
export const recorded = (name: string): Bun.BunFile => Bun.file(join(RECORDED, name));
