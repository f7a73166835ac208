/**
 * Folder of models' own chat templates, to compare ours with: `$HEARTH_TEMPLATES`, like llama.cpp's `models/templates`,
 * else `templates` among the reference data. Tests that need a missing one are skipped by name.
 */
import { existsSync, readFileSync } from "node:fs";
import { join } from "node:path";
import { test } from "bun:test";
import { golden } from "../../../golden.ts";

const folder = process.env["HEARTH_TEMPLATES"] ?? golden("templates");

export const referenceTemplate = (file: string): string => readFileSync(join(folder, file), "utf8");

/** A test that runs only where that template is present. */
export const withTemplate = (file: string): typeof test =>
  existsSync(join(folder, file)) ? test : (test.skip as typeof test);
