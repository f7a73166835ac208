/**
 * Kills and stops nodes of a cluster, cuts the first one's connection to the database, and crashes the database, again
 * and again under load, and reports the fate of accepted requests, and the time until a node's work was taken over.
 *
 *   bun bench/cluster-kill.ts [--nodes 3] [--kills 100] [--stops 3] [--restarts 20] [--cuts 0] [--every 1000]
 *     [--senders 4] [--pause 20] [--turn 40]
 *     [--clock SECONDS]… offset of a node's clock, the first's, the second's …: `--clock=600 --clock=-600`
 *     [--from COMMIT] nodes start with that version, whose tables may be older, and are replaced under load
 *
 * Lost, twice, disordered and overlaps must be empty. `repeated` counts turns that were started again, because their
 * node died or the database crashed before the answer was stored: a turn runs at least once, and its answer is stored
 * once. A kill costs at most as many as a node runs at once, a crash of the database as many as all nodes do.
 *
 * A cut needs root on Linux, with iproute2; a clock offset needs libfaketime.
 */
import { mkdtempSync, rmSync, symlinkSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { parseArgs } from "node:util";
import { killCluster, type Takeover } from "../test/hostile/killed-cluster.ts";

const number = (fallback: string) => ({ type: "string", default: fallback }) as const;
const { values } = parseArgs({
  options: {
    nodes: number("3"),
    kills: number("100"),
    stops: number("3"),
    restarts: number("20"),
    cuts: number("0"),
    clock: { type: "string", multiple: true, default: [] },
    from: { type: "string" },
    every: number("1000"),
    pause: number("20"),
    senders: number("4"),
    turn: number("40"),
  },
});
const root = join(import.meta.dir, "..");
const git = (...args: string[]): void => {
  const { success, stderr } = Bun.spawnSync(["git", "-C", root, ...args]);
  if (!success) throw new Error(stderr.toString());
};
const older = values.from === undefined ? undefined : mkdtempSync(join(tmpdir(), "hearth-older-"));
if (older !== undefined) {
  git("worktree", "add", "--detach", older, values.from!);
  symlinkSync(join(root, "node_modules"), join(older, "node_modules"));
}
const { kills, stops, cuts, ...report } = await killCluster({
  nodes: Number(values.nodes),
  kills: Number(values.kills),
  stops: Number(values.stops),
  restarts: Number(values.restarts),
  everyMs: Number(values.every),
  pauseMs: Number(values.pause),
  senders: Number(values.senders),
  turnMs: Number(values.turn),
  cuts: Number(values.cuts),
  clocks: values.clock.map(Number),
  ...(older !== undefined && { older: join(older, "test/hostile/cluster-node.ts") }),
}).finally(() => {
  if (older === undefined) return;
  rmSync(join(older, "node_modules"));
  git("worktree", "remove", "--force", older);
});

/** Milliseconds: count, median and maximum. */
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
  cutOff: inBrief(cuts, "nodeMs"),
  runsOfCutOff: inBrief(cuts, "runsMs"),
  leasesOfCutOff: inBrief(cuts, "leasesMs"),
};
console.log(JSON.stringify({ ...report, takeover }, null, 2));
