import { afterEach, beforeEach, expect, test } from "bun:test";
import { mkdtempSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { plain } from "../../../../src/gateway/agent/boundary/tainted-text.ts";
import type { AgentAction } from "../../../../src/gateway/hooks/action.ts";
import { hooksSchema } from "../../../../src/gateway/hooks/config.ts";
import { makeMappings, runMapping } from "../../../../src/gateway/hooks/mapping/index.ts";
import { TransformPool } from "../../../../src/gateway/hooks/mapping/transforms/pool.ts";
import { makeRequest } from "./view.ts";

const PATIENCE_MS = 120_000;

let folder: string;
let pool: TransformPool;
beforeEach(() => {
  folder = mkdtempSync(join(tmpdir(), "hearth-transformed-"));
  pool = new TransformPool();
});
afterEach(async () => {
  await pool[Symbol.asyncDispose]();
  rmSync(folder, { recursive: true, force: true });
});

/** Mappings of a real configuration, each with a transform in a real process. */
function makeRun(modules: Readonly<Record<string, string>>, transformTimeoutMs = 60_000) {
  for (const [name, text] of Object.entries(modules)) writeFileSync(join(folder, name), text);
  const mappings = makeMappings({
    hooks: hooksSchema.parse({
      transformsDir: ".",
      mappings: Object.keys(modules).map((module) => ({
        match: { path: module },
        transform: { module },
        messageTemplate: "Total: {{ values.total }}",
      })),
    }),
    folder,
  });
  return (path: string, payload: unknown, headers: Record<string, string> = {}) => {
    const request = makeRequest({ path, payload, headers });
    const { transformsDir } = mappings;
    const parts = { transforms: pool, transformsDir, transformTimeoutMs, isChannel: () => true };
    return runMapping(mappings.find(request)!, request, parts);
  };
}

test("a transform may return the text as text or message for both kinds of action", async () => {
  const run = makeRun({
    "text.ts": "export default () => ({ text: 'dark' });",
    "wake.ts": "export default () => ({ kind: 'wake', message: 'dark' });",
    "both.ts": "export default () => ({ kind: 'wake', message: 'long', text: 'short' });",
  });
  const said = async (path: string) => {
    const outcome = await run(path, {});
    const [action] = outcome.kind === "actions" ? outcome.actions : [];
    return action && plain(action.kind === "wake" ? action.text : action.message);
  };
  expect([await said("text.ts"), await said("wake.ts"), await said("both.ts")]).toEqual(["dark", "dark", "short"]);
});

test("the operator's template shows values that a transform computed", async () => {
  const run = makeRun({
    "sum.ts": `
      interface Input { payload: { prices: number[] } }
      export default ({ payload }: Input) => ({ values: { total: payload.prices.reduce((a, b) => a + b, 0) } });`,
  });
  const outcome = await run("sum.ts", { prices: [1, 2, 3] });
  expect(outcome).toMatchObject({
    actions: [
      {
        message: [
          { from: "operator", text: "Total: " },
          { from: "external", text: "6" },
        ],
      },
    ],
  });
});

test("a transform sees no credential of the request", async () => {
  const run = makeRun({ "all.ts": "export default (input: unknown) => ({ message: JSON.stringify(input) });" });
  const outcome = await run(
    "all.ts",
    {},
    { authorization: "Bearer s3cr3t", "stripe-signature": "s3cr3t", "x-ok": "1" },
  );
  if (outcome.kind !== "actions" || outcome.actions[0]?.kind !== "agent") return expect.unreachable();
  expect(plain(outcome.actions[0].message)).toContain('"x-ok":"1"');
  expect(plain(outcome.actions[0].message)).not.toContain("s3cr3t");
});

test(
  "only the mapping of a broken transform fails, and works again once the transform is repaired",
  async () => {
    const run = makeRun({ "good.ts": "export default () => {};", "bad.ts": "export default () => {" });
    expect(await run("bad.ts", {})).toMatchObject({
      kind: "failed",
      code: "mapping_failed",
      reason: expect.stringContaining("transform 'bad.ts'"),
    });
    expect(await run("good.ts", {})).toMatchObject({ kind: "actions" });
    writeFileSync(join(folder, "bad.ts"), "export default () => null;");
    expect(await run("bad.ts", {})).toEqual({ kind: "nothing" });
  },
  PATIENCE_MS,
);

test(
  "a transform that hangs ends with an error",
  async () => {
    const run = makeRun({ "hang.ts": "export default () => { for (;;) {} };" }, 300);
    expect(await run("hang.ts", {})).toMatchObject({
      code: "mapping_failed",
      reason: expect.stringContaining("300 ms"),
    });
  },
  PATIENCE_MS,
);

test(
  "the time limit covers a whole request, not each of its items",
  async () => {
    writeFileSync(join(folder, "slow.ts"), "export default async () => { await Bun.sleep(200); };");
    const [mapping] = makeMappings({
      hooks: hooksSchema.parse({
        transformsDir: ".",
        mappings: [{ forEach: "payload", transform: { module: "slow.ts" }, messageTemplate: "x" }],
      }),
      folder,
    }).all;
    const parts = { transforms: pool, transformsDir: folder, transformTimeoutMs: 1000, isChannel: () => true };
    const payload = Array.from({ length: 100 }, () => "x");
    expect(await runMapping(mapping!, makeRequest({ payload }), parts)).toMatchObject({ code: "mapping_failed" });
  },
  PATIENCE_MS,
);

test("items are transformed a few at a time, and keep their order", async () => {
  const [mapping] = makeMappings({
    hooks: hooksSchema.parse({
      mappings: [{ forEach: "payload", transform: { module: "x.ts" }, messageTemplate: "{{values.n}}" }],
    }),
    folder,
  }).all;
  const running = { now: 0, most: 0 };
  const transforms = {
    run: async (_: unknown, { item }: { item?: unknown }): Promise<unknown> => {
      running.most = Math.max(running.most, ++running.now);
      await Bun.sleep(5 + ((Number(item) * 7) % 11));
      running.now -= 1;
      return { values: { n: item } };
    },
  };
  const parts = { transforms, transformsDir: folder, transformTimeoutMs: 10_000, isChannel: () => true };
  const payload = Array.from({ length: 40 }, (__, i) => i);
  const outcome = await runMapping(mapping!, makeRequest({ payload }), parts);
  const texts =
    outcome.kind === "actions" ? outcome.actions.map((action) => plain((action as AgentAction).message)) : [];
  expect(texts).toEqual(payload.map(String));
  expect(running.most).toBe(8);
});
