/** Tests against reference data. Without the data they skip by name; `golden-root.ts` says where it is. */
import { join } from "node:path";
import { test } from "bun:test";
import { goldenRoot, hasGolden } from "./golden-root.ts";

export { hasGolden } from "./golden-root.ts";

/** Path of a reference file. */
export const golden = (path: string): string => join(goldenRoot, path);

/** A test that runs only where the reference data is present. */
export const goldenTest: typeof test = hasGolden ? test : (test.skip as typeof test);
