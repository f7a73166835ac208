/**
 * The folder of reference data: `$HEARTH_GOLDEN`, else `../shared/golden` beside the repository. Tests that need
 * missing data are skipped by name.
 */
import { existsSync } from "node:fs";
import { join, resolve } from "node:path";
import { test } from "bun:test";

const root = process.env["HEARTH_GOLDEN"] ?? resolve(import.meta.dir, "../../shared/golden");

/** Path of a reference file. */
export const golden = (path: string): string => join(root, path);

/** True where the reference data is present. */
export const hasGolden: boolean = existsSync(root);

/** A test that runs only where the reference data is present. */
export const goldenTest: typeof test = hasGolden ? test : (test.skip as typeof test);
