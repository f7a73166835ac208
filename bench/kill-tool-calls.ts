/** Kills gateways during turns whose tools have effects, and counts these effects. Argument: number of kills. */
import { killDuringCalls } from "../test/gateway/operate/kill-calls.ts";

const kills = Number(process.argv[2] ?? 200);
const { faults, ...counts } = await killDuringCalls(kills);
process.stdout.write(`${JSON.stringify({ kills, ...counts, faults: faults.length })}\n`);
for (const fault of faults) process.stdout.write(`${fault}\n`);
process.exit(faults.length > 0 ? 1 : 0);
