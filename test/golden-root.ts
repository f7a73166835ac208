/** The folder of reference data: `$HEARTH_GOLDEN`, else `../shared/golden` beside the repository. */
import { existsSync } from "node:fs";
import { resolve } from "node:path";

export const goldenRoot: string = process.env["HEARTH_GOLDEN"] ?? resolve(import.meta.dir, "../../shared/golden");

/** True if the reference data is present. */
export const hasGolden: boolean = existsSync(goldenRoot);
