import { afterAll, expect, test } from "bun:test";
import { mkdirSync, mkdtempSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { compileHearth, runShard, type ShardResult } from "./shard.ts";

const root = mkdtempSync(join(tmpdir(), "hearth-shard-"));
mkdirSync(join(root, "test"));
afterAll(() => rmSync(root, { recursive: true }));

/** Runs files whose tests have these bodies, by name; a file without bodies has no test. */
function run(files: Record<string, readonly string[]>, more: { msMax?: number } = {}): Promise<ShardResult> {
  const paths = Object.entries(files).map(([name, bodies]) => {
    const tests = bodies.map((body, i) => `test("${name} ${i}", () => { ${body} });`);
    writeFileSync(
      join(root, "test", `${name}.test.ts`),
      `import { expect, test } from "bun:test";\n${tests.join("\n")}`,
    );
    return `test/${name}.test.ts`;
  });
  return runShard(paths, { root, temporary: root, seed: 7, ...more });
}

test("passes, failures and skips are counted, and a failure has its output", async () => {
  const result = await run({ good: ["expect(1).toBe(1)"], bad: ["expect('this').toBe('that')", "expect(1).toBe(1)"] });
  expect(result).toMatchObject({ passed: 2, failed: 1, skipped: 0 });
  expect(result.failures).toEqual([expect.stringMatching(/^test\/bad\.test\.ts:\n[^]*"that"[^]*\(fail\) bad 0/)]);
  expect(Object.keys(result.durations).toSorted()).toEqual(["test/bad.test.ts", "test/good.test.ts"]);
});

test.each([
  ["crashes", "process.kill(process.pid, 'SIGSEGV')", "the process ended with SIG"],
  ["ends the process with code 0", "process.exit(0)", "the process ended with code 0 before its summary"],
])("a test that %s fails its shard", async (_, body, why) => {
  const result = await run({ first: ["expect(1).toBe(1)"], ends: [body] });
  expect(result.failed).toBe(1);
  expect(result.failures).toEqual([expect.stringContaining(why)]);
});

test("a test that hangs is killed, and the failure lists its threads", async () => {
  const result = await run({ hangs: ["console.log('so far'); for (;;);"] }, { msMax: 2000 });
  expect(result.failed).toBe(1);
  expect(result.failures[0]).toMatch(/ended with SIGKILL after 2 s, its threads [^]*bun\S* R \d{3,} [^]*so far/);
});

test("a stray process that holds the shard's output does not delay the shard", async () => {
  const body = `const child = Bun.spawn(["sleep", "60"], { stdout: "inherit", detached: true });
    child.unref();
    expect("stray " + child.pid).toBe("");`;
  const startedMs = performance.now();
  const result = await run({ leaves: [body] });
  const pid = Number(/stray (\d+)/.exec(result.failures.join())?.[1]);
  expect(performance.now() - startedMs).toBeLessThan(40_000);
  process.kill(pid, "SIGKILL"); // it existed until now
  expect(result).toMatchObject({ passed: 0, failed: 1 });
}, 60_000);

test("a file that runs no test, and an error outside of tests, fail their shard", async () => {
  const empty = await run({ some: ["expect(1).toBe(1)"], none: [] });
  expect([empty.passed, empty.failures]).toEqual([1, ["test/none.test.ts: no test of it ran"]]);
  writeFileSync(join(root, "test/throws.test.ts"), "throw new Error('while it loads');");
  const broken = await runShard(["test/throws.test.ts"], { root, temporary: root, seed: 7 });
  expect(broken.failed).toBeGreaterThanOrEqual(1);
  expect(broken.failures.join("\n")).toContain("while it loads");
});

test("each shard has the seed and a temporary home, which is removed after it", async () => {
  const look =
    "expect(process.env.HEARTH_TEST_SEED).toBe('7'); throw new Error(`home ${process.env.HOME} of ${process.env.TMPDIR}.`)";
  const { failures } = await run({ looks: [look] });
  const [, home, temporary] = /error: home (\S+) of (\S+)\./.exec(failures[0]!)!;
  expect(temporary).toBe(root);
  expect(home).toStartWith(`${root}/home-`);
  expect(await Bun.file(join(home!, "report.xml")).exists()).toBe(false);
});

test("a program that does not compile is one failure, with the compiler's output", async () => {
  mkdirSync(join(root, "packaging"));
  writeFileSync(
    join(root, "packaging/compile.ts"),
    "console.error(`no room for ${process.argv[3]}`); process.exit(3);",
  );
  const { passed, failed, failures } = await compileHearth(join(root, "hearth"), { root, temporary: root });
  expect([passed, failed, failures]).toEqual([
    0,
    1,
    [`packaging/compile.ts ended with code 3:\n\nno room for ${join(root, "hearth")}`],
  ]);
});
