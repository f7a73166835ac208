/**
 * Writes bench/REPORT.md and bench/report.svg from the records that benchmarks wrote to bench/records/ with --record.
 *
 *   bun install --cwd bench && bun bench/report.ts
 */
import { writeFileSync } from "node:fs";
import { join } from "node:path";
import { inOrder, reportOf } from "./report/markdown.ts";
import { plotOf } from "./report/plot.ts";
import { readRecords } from "./report/record.ts";

const records = inOrder(readRecords());
writeFileSync(join(import.meta.dir, "REPORT.md"), reportOf(records));
writeFileSync(join(import.meta.dir, "report.svg"), await plotOf(records));
