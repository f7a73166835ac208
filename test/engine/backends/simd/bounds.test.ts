/** No kernel reads outside of a tensor, for any type and shape: each tensor borders on a protected page. */
import { expect, test } from "bun:test";
import { join } from "node:path";
import { simdLevels, twoLevels } from "./levels.ts";

const run = (...args: string[]) =>
  Bun.spawnSync([process.execPath, join(import.meta.dir, "guarded.ts"), ...args], {
    stdio: ["ignore", "pipe", "pipe"],
    env: { ...process.env, BUN_CRASH_REPORT_URL: "" },
  });

const canGuard = process.platform === "linux" && simdLevels.length > 0;

test.skipIf(!canGuard)(
  "the guard kills a process that reads one byte behind a tensor",
  () => {
    const { exitCode, signalCode } = run(simdLevels[0]!.level, "--read-behind");
    expect({ exitCode, killed: signalCode !== undefined || exitCode !== 0 }).toMatchObject({ killed: true });
  },
  30_000,
);

test.skipIf(!canGuard).each(twoLevels("bounds on the CPU", simdLevels).map(({ level }) => [level] as const))(
  "%s: every case runs with all of its tensors guarded",
  (level) => {
    const { exitCode, stdout, stderr } = run(level);
    expect({ exitCode, stderr: stderr.toString() }).toEqual({ exitCode: 0, stderr: "" });
    expect(Number.parseInt(stdout.toString(), 10)).toBeGreaterThan(250);
  },
  120_000,
);
