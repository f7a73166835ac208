/**
 * Kills nodes of a cluster, and crashes its database, again and again under load, and says what became of what they had
 * accepted.
 *
 *   bun bench/cluster-kill.ts [--nodes 3] [--kills 100] [--restarts 20] [--every 2000] [--pause 10]
 */
import { parseArgs } from "node:util";
import { killCluster } from "../test/hostile/killed-cluster.ts";

const number = (fallback: string) => ({ type: "string", default: fallback }) as const;
const { values } = parseArgs({
  options: {
    nodes: number("3"),
    kills: number("100"),
    restarts: number("20"),
    every: number("2000"),
    pause: number("10"),
  },
});
const { takeoverMs, ...report } = await killCluster({
  nodes: Number(values.nodes),
  kills: Number(values.kills),
  restarts: Number(values.restarts),
  everyMs: Number(values.every),
  pauseMs: Number(values.pause),
});
const sorted = takeoverMs.toSorted((a, b) => a - b);
const takeover = { n: sorted.length, median: sorted[sorted.length >> 1], most: sorted.at(-1) };
console.log(JSON.stringify({ ...report, takeoverMs: takeover }, null, 2));
