import { afterEach, beforeEach, describe, expect, test } from "bun:test";
import { existsSync, mkdirSync, mkdtempSync, readFileSync, rmSync, symlinkSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { TransformPool } from "../../../../../src/gateway/hooks/mapping/transforms/pool.ts";
import { eventually } from "../../../../e2e/hearth.ts";

const PATIENCE_MS = 120_000;
const GENEROUS_MS = 60_000; // for transforms that should end by themselves
const INPUT = { path: "p", query: { q: "1" }, headers: { "x-a": "b" }, payload: { n: 5 } };

let home: string;
let folder: string;
let pool: TransformPool;
beforeEach(() => {
  home = mkdtempSync(join(tmpdir(), "hearth-transforms-"));
  folder = join(home, "transforms");
  mkdirSync(folder);
  pool = new TransformPool({ concurrency: 2 });
});
afterEach(async () => {
  await pool[Symbol.asyncDispose]();
  rmSync(home, { recursive: true, force: true });
});

function write(name: string, text: string): void {
  writeFileSync(join(folder, name), text);
}
const run = (
  module: string,
  more: { lane?: string; export?: string; timeoutMs?: number; signal?: AbortSignal; input?: object } = {},
) =>
  pool.run(
    { lane: more.lane ?? module, folder, module, export: more.export, timeoutMs: more.timeoutMs ?? GENEROUS_MS },
    { ...INPUT, ...more.input },
    more.signal,
  );

/** A module that writes its process id to a file, then never ends. */
const loopAfterPid = (file: string): string =>
  `export default () => { require('fs').writeFileSync(${JSON.stringify(file)}, String(process.pid)); for (;;) {} };`;

/** The pid that a running transform wrote to a file. Throws the error of a call that failed before. */
async function pidIn(file: string, call: Promise<unknown>): Promise<number> {
  const read = (): number => (existsSync(file) ? Number(readFileSync(file, "utf8")) : 0);
  const early = call.then((end) => Promise.reject(new Error(`it ended before it ran: ${JSON.stringify(end)}`)));
  expect(await Promise.race([early, eventually(() => read() > 0, PATIENCE_MS)])).toBe(true);
  return read();
}

function isRunning(pid: number): boolean {
  try {
    return process.kill(pid, 0);
  } catch {
    return false;
  }
}

describe("a result that JSON cannot represent is an error:", () => {
  test.each([
    ["({ message: () => 1 })", "it returned for 'message' a function, which is not JSON"],
    ["({ values: { deep: [Symbol('x')] } })", "it returned for '0' a symbol"],
    ["({ timeoutSeconds: 0 / 0 })", "it returned for 'timeoutSeconds' NaN"],
    ["({ timeoutSeconds: 1 / 0 })", "it returned for 'timeoutSeconds' Infinity"],
    ["({ values: new Map([['a', 1]]) })", "it returned for 'values' a Map"],
    ["({ tools: new Set(['a']) })", "it returned for 'tools' a Set"],
    ["({ message: Promise.resolve('x') })", "it returned for 'message' a Promise"],
    ["({ itemId: 5n })", "it returned for 'itemId' a bigint"],
    ["() => 1", "it returned a function"],
  ])("%s", async (output, reason) => {
    write("a.js", `export default () => (${output});`);
    await expect(run("a.js")).rejects.toMatchObject({ code: "runner", message: expect.stringContaining(reason) });
  });

  test("dates, undefined and nested values are converted to JSON", async () => {
    write("a.js", "export default () => ({ message: undefined, values: { at: new Date(0), n: null, l: [1] } });");
    expect(await run("a.js")).toEqual({ values: { at: "1970-01-01T00:00:00.000Z", n: null, l: [1] } });
  });
});

describe("a call of a module", () => {
  test("ignores a bunfig.toml in its folder", async () => {
    write("bunfig.toml", 'preload = ["./first.js"]');
    write("first.js", "globalThis.first = true;");
    write("a.js", "export default () => ({ message: `${globalThis.first}` });");
    expect(await run("a.js")).toEqual({ message: "undefined" });
  });

  test("passes the request to the default export", async () => {
    write(
      "a.ts",
      "export default (input: { payload: { n: number } }) => ({ ...input, url: `${(input as any).url}` });",
    );
    expect(await run("a.ts")).toEqual({ ...INPUT, url: "http://localhost/p?q=1" });
  });

  test.each([
    [
      "a TypeScript function that waits",
      "a.ts",
      "export default async (i: any): Promise<number> => { await 1; return i.payload.n };",
      5,
    ],
    ["an export called transform", "a.js", "export const transform = () => 6;", 6],
    ["CommonJS", "a.cjs", "module.exports = () => 7;", 7],
    ["null", "a.mjs", "export default () => null;", null],
    ["undefined", "a.mjs", "export default () => {};", undefined],
    ["characters of all kinds", "a.ts", "export default () => 'ä\\n👩‍👩‍👧\\u2028';", "ä\n👩‍👩‍👧\u2028"],
  ])("returns the result of %s", async (_, name, text, wanted) => {
    write(name, text);
    expect<unknown>(await run(name)).toBe(wanted);
  });

  test("uses the export that the mapping names", async () => {
    write("a.ts", "export const one = () => 1; export const two = () => 2; export default () => 0;");
    expect(await run("a.ts", { export: "one" })).toBe(1);
    expect(await run("a.ts", { export: "two" })).toBe(2);
    expect(await run("a.ts")).toBe(0);
  });

  test("may import neighbours, JSON and modules of the runtime from a subfolder", async () => {
    mkdirSync(join(folder, "sub"));
    write("shared.ts", "import { basename } from 'node:path'; export const name = basename('/a/shared');");
    write("table.json", '{"t": 1}');
    write(
      "sub/a.ts",
      "import { name } from '../shared.ts'; import t from '../table.json'; export default () => [name, t];",
    );
    expect(await run("sub/a.ts")).toEqual(["shared", { t: 1 }]);
  });

  test("passes nothing of the server's environment", async () => {
    write(".env", "LEAK=from-a-file");
    write("a.ts", "export default () => ({ ...process.env });");
    process.env["HOOKS_TEST_SECRET"] = "s3cr3t";
    try {
      expect(await run("a.ts")).toEqual({});
    } finally {
      delete process.env["HOOKS_TEST_SECRET"];
    }
  });

  test("ignores what the module prints", async () => {
    write("a.ts", "export default () => { console.log('{}'); console.error('x'); return 1 };");
    expect(await run("a.ts")).toBe(1);
  });

  test("returns its own result among many concurrent calls", async () => {
    write("a.ts", "export default async (i: any) => { await Bun.sleep(i.payload.n % 3); return i.payload.n };");
    const all = Array.from({ length: 100 }, (_, n) => run("a.ts", { input: { payload: { n } } }));
    expect(await Promise.all(all)).toEqual(Array.from({ length: 100 }, (_, n) => n));
  });
});

describe("the next call uses", () => {
  test("an edited module", async () => {
    write("a.ts", "export default () => 1;");
    expect(await run("a.ts")).toBe(1);
    write("a.ts", "export default () => 2;");
    expect(await run("a.ts")).toBe(2);
  });

  test("an edited import", async () => {
    write("b.ts", "export const b = 1;");
    write("a.ts", "import { b } from './b.ts'; export default () => b;");
    expect(await run("a.ts")).toBe(1);
    write("b.ts", "export const b = 2;");
    expect(await run("a.ts")).toBe(2);
  });

  test("a repaired module", async () => {
    write("a.ts", "export default () => {");
    expect(await run("a.ts").catch((error: Error) => error.message)).toContain("transform 'a.ts'");
    write("a.ts", "export default () => 3;");
    expect(await run("a.ts")).toBe(3);
  });
});

describe("a fault stays within its process:", () => {
  test.each<[string, string, string, number]>([
    ["throws", "export default () => { throw new Error('boom') };", "transform 'a.ts': boom", GENEROUS_MS],
    ["throws a value that is not an error", "export default () => { throw 5 };", "transform 'a.ts': 5", GENEROUS_MS],
    ["fails to load", "throw new Error('at load'); export default () => 1;", "at load", GENEROUS_MS],
    ["exports no function", "export const other = 1;", "no function is exported as default or transform", GENEROUS_MS],
    ["loops without end", "export default () => { for (;;) {} };", "it took more than 300 ms", 300],
    ["loops without end when loaded", "for (;;) {}", "it took more than 300 ms", 300],
    ["never answers", "export default () => new Promise(() => {});", "it took more than 300 ms", 300],
    ["exits", "export default () => process.exit(3);", "it ended its process (status 3)", GENEROUS_MS],
    ["kills itself", "export default () => process.kill(process.pid, 'SIGKILL');", "SIGKILL", GENEROUS_MS],
    [
      "rejects a promise that it does not await",
      "export default () => { Promise.reject(new Error('x')); return new Promise(() => {}) };",
      "it ended its process (status 1)",
      GENEROUS_MS,
    ],
    [
      "returns a cyclic object",
      "export default () => { const a: any = {}; a.a = a; return a };",
      "cyclic",
      GENEROUS_MS,
    ],
    ["returns too much", "export default () => 'x'.repeat(5e6);", "more than 4194304 characters", GENEROUS_MS],
    [
      "writes a forged answer to its output",
      `export default () => { process.stdout.write('{"id":"1","kind":"done","output":1}\\n'); return 2 };`,
      "it wrote to its standard output",
      GENEROUS_MS,
    ],
    [
      "floods its output",
      "export default () => { for (;;) process.stdout.write('x'.repeat(65536)) };",
      "it wrote too much",
      GENEROUS_MS,
    ],
  ])(
    "a module that %s ends with an error",
    async (_, text, problem, timeoutMs) => {
      write("a.ts", text);
      expect(await run("a.ts", { timeoutMs }).catch((error: Error) => error.message)).toContain(problem);
      write("b.ts", "export default () => 'fine';");
      expect(await run("b.ts")).toBe("fine");
    },
    PATIENCE_MS,
  );

  test.skipIf(process.platform !== "linux")(
    "a module that takes all memory ends with an error",
    async () => {
      write("a.ts", "export default () => { const all = []; for (;;) all.push(new Array(1e5).fill(Math.random())) };");
      const problem = await run("a.ts").catch((error: Error) => error.message);
      expect(problem).toMatch(/more than 256 MiB of memory|out of memory|ended its process/i);
    },
    PATIENCE_MS,
  );

  test(
    "a module that loops after its answer fails at most its next call, and no other module's",
    async () => {
      const file = join(home, "loops");
      const loop = `require('fs').writeFileSync(${JSON.stringify(file)}, ""); for (;;) {}`;
      write("a.ts", `export default () => { setTimeout(() => { ${loop} }, 1); return 1 };`);
      write("b.ts", "export default () => 2;");
      expect(await run("a.ts")).toBe(1);
      expect(await eventually(() => existsSync(file), PATIENCE_MS)).toBe(true);
      expect(await run("b.ts")).toBe(2);
      await expect(run("a.ts", { timeoutMs: 300 })).rejects.toThrow("it took more than 300 ms");
    },
    PATIENCE_MS,
  );

  test(
    "a module stopped because an earlier call used its time still reports the whole limit",
    async () => {
      await using narrow = new TransformPool({ concurrency: 1 });
      const file = join(home, "pid");
      write("a.ts", loopAfterPid(file));
      write("b.ts", "export default () => { for (;;) {} };");
      const abort = new AbortController();
      const settings = { lane: "one", folder };
      const first = narrow.run({ ...settings, module: "a.ts", timeoutMs: GENEROUS_MS }, INPUT, abort.signal);
      await pidIn(file, first);
      const second = narrow.run({ ...settings, module: "b.ts", timeoutMs: 400 }, INPUT);
      Bun.sleepSync(20);
      abort.abort();
      await expect(first).rejects.toThrow("request canceled");
      await expect(second).rejects.toThrow("it took more than 400 ms");
    },
    PATIENCE_MS,
  );

  test("a process killed between two calls fails at most one call", async () => {
    write("a.ts", "export default () => process.pid;");
    process.kill(Number(await run("a.ts")), "SIGKILL");
    const outcome = await run("a.ts").catch((error: Error) => error.message);
    expect(typeof outcome === "number" || String(outcome).includes("ended its process (SIGKILL)")).toBe(true);
    expect(await run("a.ts")).toBeNumber();
  });

  test("a payload that nests too deep to be sent is refused", async () => {
    write("a.ts", "export default () => 1;");
    let payload: unknown = 1;
    for (let i = 0; i < 300_000; i++) payload = [payload];
    const outcome = await run("a.ts", { input: { payload } }).catch((error: unknown) => error);
    expect(outcome === 1 || (outcome as { code: string }).code === "too_large").toBe(true);
  });
});

describe("a caller that aborts", () => {
  test("ends its running transform", async () => {
    const file = join(home, "pid");
    write("a.ts", loopAfterPid(file));
    const abort = new AbortController();
    const call = run("a.ts", { signal: abort.signal }).catch((error: { code: string }) => error.code);
    const pid = await pidIn(file, call);
    abort.abort();
    expect(await call).toBe("cancelled");
    expect(await eventually(() => !isRunning(pid))).toBe(true);
  });

  test("while waiting gives its slot to others", async () => {
    write("a.ts", "export default async () => { await Bun.sleep(100); return 1 };");
    const abort = new AbortController();
    const calls = [run("a.ts"), run("a.ts"), run("a.ts", { signal: abort.signal }), run("a.ts")];
    abort.abort();
    const settled = await Promise.allSettled(calls);
    expect(settled.map(({ status }) => status)).toEqual(["fulfilled", "fulfilled", "rejected", "fulfilled"]);
  });
});

test("calls beyond the limit get busy, and the others are answered", async () => {
  write("a.ts", "export default () => 1;");
  const calls = Array.from({ length: 300 }, () => run("a.ts").catch(({ code }: { code: string }) => code));
  const answers = await Promise.all(calls);
  expect(answers.filter((answer) => answer === 1)).toHaveLength(258);
  expect(answers.filter((answer) => answer === "busy")).toHaveLength(42);
});

describe("slots are shared fairly:", () => {
  beforeEach(() => {
    write("loop.ts", "export default () => void Atomics.wait(new Int32Array(new SharedArrayBuffer(4)), 0, 0);");
    write("a.ts", "export default () => 1;");
    write("slow.ts", "export default async () => { await Bun.sleep(200); return Date.now() };");
  });
  const loops = (count: number, timeoutMs: number) =>
    Array.from({ length: count }, () =>
      run("loop.ts", { timeoutMs }).then(
        () => "",
        (error: Error) => error.message,
      ),
    );

  test("endless calls of a mapping leave slots to other mappings", async () => {
    const ended: string[] = [];
    const endless = Promise.all(loops(8, 4000)).then((problems) => (ended.push("loops"), problems));
    for (let i = 0; i < 5; i++) expect(await run("a.ts")).toBe(1);
    ended.push("others");
    const problems = await endless;
    expect(ended).toEqual(["others", "loops"]);
    expect(problems.filter((text) => text.includes("it took more than"))).toHaveLength(2);
    expect(problems.filter((text) => text.includes("it waited 4000 ms for others to end"))).toHaveLength(6);
  });

  test("the time spent waiting counts against the call's limit", async () => {
    const problems = await Promise.all(loops(20, 1000));
    expect(problems.filter((text) => text.includes("it waited 1000 ms for others to end"))).toHaveLength(18);
  });

  test("a mapping with many calls does not make another wait for all of them", async () => {
    const flood = Array.from({ length: 40 }, () => run("slow.ts", { lane: "flood" }));
    const more = Array.from({ length: 40 }, () => run("slow.ts", { lane: "flood 2" }));
    const mine = await Promise.all(Array.from({ length: 2 }, () => run("slow.ts", { lane: "mine" })));
    const others = await Promise.all([...flood, ...more]);
    expect(others.filter((at) => Number(at) < Math.max(...mine.map(Number))).length).toBeLessThan(20);
  });
});

test("a stopped pool ends its processes and refuses calls", async () => {
  const file = join(home, "pid");
  write("a.ts", loopAfterPid(file));
  const call = run("a.ts").catch(({ code }: { code: string }) => code);
  const pid = await pidIn(file, call);
  await pool[Symbol.asyncDispose]();
  expect(await call).toBe("cancelled");
  expect(isRunning(pid)).toBe(false);
  expect(run("a.ts")).rejects.toThrow("the server stops");
});

describe("a check loads a module without calling it", () => {
  test("and accepts a valid one", async () => {
    write("a.ts", "export default () => { throw new Error('called') };");
    await pool.check({ lane: "a", folder, module: "a.ts", timeoutMs: GENEROUS_MS });
  });
  test("and reports a missing import", async () => {
    write("a.ts", "import './nowhere.ts';");
    expect(pool.check({ lane: "a", folder, module: "a.ts", timeoutMs: GENEROUS_MS })).rejects.toThrow(
      "imports './nowhere.ts': no such file",
    );
  });
});

test("links inside of the folder are followed", async () => {
  write("real.ts", "export default () => 1;");
  symlinkSync(join(folder, "real.ts"), join(folder, "link.ts"));
  expect(await run("link.ts")).toBe(1);
});
