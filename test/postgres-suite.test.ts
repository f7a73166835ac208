/**
 * The gateway's own tests on PostgreSQL: both databases must behave the same. A run draws a quarter of the files by
 * its seed: one of every four files of similar size; files that mostly wait run beside them.
 */
import { expect, test } from "bun:test";
import { join } from "node:path";
import { hasPostgres, startPostgres } from "./postgres-server.ts";
import { drawn, testSeed } from "./seed.ts";
import { importedTests, testFiles } from "./tiers.ts";

/** Tests of the gateway that open a store through `stores.ts`, except tests for one database only. */
const SUITE = /^test\/(api|gateway\/(agent|channels|hooks|operate))\//;
const OF_ONE_DATABASE = [
  "test/gateway/agent/kill.test.ts", // a child process on a file
  "test/gateway/channels/outbox/kill.test.ts",
  "test/gateway/operate/cluster.test.ts", // PostgreSQL only, like the next three
  "test/gateway/operate/postgres.test.ts",
  "test/gateway/operate/postgres-outages.test.ts",
  "test/gateway/operate/transfer.test.ts",
  "test/gateway/operate/queries.test.ts", // SQLite's plans
  "test/gateway/operate/status.test.ts", // SQLite's files
  "test/gateway/hooks/queue/deliveries/tables.test.ts", // a file of an earlier version
  "test/gateway/hooks/queue/worker/kill.test.ts",
];
/** They mostly wait, so they run beside the others. */
const WAITING = ["test/gateway/channels/outbox/outbox.test.ts", "test/gateway/operate/mail.test.ts"];

async function suite(): Promise<string[]> {
  const files = (await testFiles()).filter((file) => SUITE.test(file) && !OF_ONE_DATABASE.includes(file));
  const opens = await Promise.all(files.map(async (file) => (await importedTests(file)).has("test/stores.ts")));
  return files.filter((_, i) => opens[i]);
}

/** Draws one of each four files in the order of their numbers of tests: no draw has only small files. */
async function drawQuarter(files: readonly string[]): Promise<string[]> {
  const testsIn = async (file: string): Promise<number> =>
    (await Bun.file(join(import.meta.dir, "..", file)).text()).split(/^ *test[.(]/m).length - 1;
  const counts = new Map(await Promise.all(files.map(async (file) => [file, await testsIn(file)] as const)));
  const bySize = files.toSorted((a, b) => counts.get(a)! - counts.get(b)!);
  const fours = Array.from({ length: Math.ceil(files.length / 4) }, (_, i) => bySize.slice(4 * i, 4 * i + 4));
  return fours.flatMap((four, i) => drawn(`files on PostgreSQL ${i}`, four, 1));
}

/** Returns the failures, and the number of passed tests. */
async function run(url: string, files: readonly string[]): Promise<{ failed: string[]; passed: number }> {
  const child = Bun.spawn([process.execPath, "test", `--seed=${testSeed}`, "--timeout", "60000", ...files], {
    cwd: join(import.meta.dir, ".."),
    env: { ...process.env, HEARTH_TEST_POSTGRES: url },
    stdout: "ignore",
    stderr: "pipe",
  });
  const said = await new Response(child.stderr).text();
  const failed = said.split("\n").filter((line) => /^\(fail\)|error:/.test(line));
  if ((await child.exited) !== 0) failed.push(`exit code ${child.exitCode}`);
  return { failed, passed: Number(/^ *(\d+) pass$/m.exec(said)?.[1]) };
}

test.skipIf(!hasPostgres)(
  "the drawn database tests pass on PostgreSQL (Debian's postgresql)",
  async () => {
    const server = await startPostgres({ syncs: false }); // other tests cover durability
    try {
      const files = await suite();
      const others = files.filter((file) => !WAITING.includes(file));
      expect(files.length - others.length).toBe(WAITING.length);
      const some = await drawQuarter(others);
      const ends = await Promise.all([run(server.url, WAITING), run(server.url, some)]);
      expect(ends.map(({ failed }) => failed)).toEqual([[], []]);
      expect(ends[0]!.passed).toBeGreaterThan(20);
      expect(ends[1]!.passed).toBeGreaterThan(100);
    } finally {
      await server.remove();
    }
  },
  600_000,
);
