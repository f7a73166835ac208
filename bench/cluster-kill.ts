/**
 * Kills and stops nodes of a cluster, and crashes its database, again and again under load, and says what became of
 * what they had accepted, and how long a node kept what it held.
 *
 *   bun bench/cluster-kill.ts [--nodes 3] [--kills 100] [--stops 3] [--restarts 20] [--every 1000] [--pause 20]
 */
import { parseArgs } from "node:util";
import { killCluster, type Takeover } from "../test/hostile/killed-cluster.ts";

const number = (fallback: string) => ({ type: "string", default: fallback }) as const;
const { values } = parseArgs({
  options: {
    nodes: number("3"),
    kills: number("100"),
    stops: number("3"),
    restarts: number("20"),
    every: number("1000"),
    pause: number("20"),
  },
});
const { kills, stops, ...report } = await killCluster({
  nodes: Number(values.nodes),
  kills: Number(values.kills),
  stops: Number(values.stops),
  restarts: Number(values.restarts),
  everyMs: Number(values.every),
  pauseMs: Number(values.pause),
});

/** Milliseconds: how many, the median and the most. */
function inBrief(takeovers: readonly Takeover[], of: keyof Takeover): string {
  const found = takeovers.flatMap((takeover) => takeover[of] ?? []).toSorted((a, b) => a - b);
  return `${found.length}: ${found[found.length >> 1]}, most ${found.at(-1)}`;
}

const takeover = {
  killed: inBrief(kills, "nodeMs"),
  runsOfKilled: inBrief(kills, "runsMs"),
  leasesOfKilled: inBrief(kills, "leasesMs"),
  stopped: inBrief(stops, "nodeMs"),
  runsOfStopped: inBrief(stops, "runsMs"),
  leasesOfStopped: inBrief(stops, "leasesMs"),
};
console.log(JSON.stringify({ ...report, takeover }, null, 2));
