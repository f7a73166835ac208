/**
 * Values of random schemas from the embedded model, through the real server: as the format of an answer and as the
 * arguments of a required tool. Prints how many fit.
 *
 *   bun bench/schemas.ts [--count 200] [--from 0]
 */
import { parseArgs } from "node:util";
import { startHearth } from "../test/e2e/hearth.ts";
import { askForSchemas } from "../test/e2e/schema-answers.ts";

const { values: flags } = parseArgs({
  options: { count: { type: "string", default: "200" }, from: { type: "string", default: "0" } },
});
const seeds = Array.from({ length: Number(flags.count) }, (_, i) => Number(flags.from) + i);

const hearth = await startHearth();
try {
  for (const way of ["format", "tool_choice"] as const) {
    const startedMs = performance.now();
    const faults = await askForSchemas(hearth, way, seeds);
    const seconds = (performance.now() - startedMs) / 1000;
    console.log(`${way.padEnd(11)}  ${seeds.length - faults.length} of ${seeds.length} fit   ${seconds.toFixed(1)} s`);
    for (const fault of faults) console.log(`  ${fault}`);
    if (faults.length > 0) process.exitCode = 1;
  }
} finally {
  await hearth.stop();
}
