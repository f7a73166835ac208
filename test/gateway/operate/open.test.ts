/** The gateway of a configuration file, opened like the server does: refused reloads, and missing models. */
import { expect, test } from "bun:test";
import { mkdtempSync, renameSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { makeLogger } from "../../../src/base/log.ts";
import { readConfig } from "../../../src/base/config/config.ts";
import { auditModels } from "../../../src/gateway/operate/audit-models.ts";
import { openGateway } from "../../../src/gateway/operate/open.ts";
import { makeSnapshot } from "../../../src/gateway/operate/snapshot.ts";
import { scriptedRuntime } from "../agent/scripted-runtime.ts";
import { afterTest } from "../../cleanups.ts";
import { eventually } from "../../e2e/hearth.ts";
import { makeHarness } from "../../server/harness.ts";
import { makeFakeRuntime } from "../../server/fakes.ts";
import { quiet, startChat, TOKEN } from "./fixtures.ts";

const WAIT_MS = 60_000;
const hooks = { enabled: true, token: TOKEN, allowQueryToken: false };
const right = { hooks, agents: quiet };

interface Opened {
  readonly names: string[];
  readonly mute: string[];
}

async function opened(settings: object, { names, mute }: Opened = { names: ["hearth:latest"], mute: [] }) {
  const home = mkdtempSync(join(tmpdir(), "hearth-open-"));
  afterTest(() => rmSync(home, { recursive: true, force: true }));
  const path = join(home, "hearth.json5");
  const write = (text: string): void => {
    writeFileSync(`${path}.new`, text);
    renameSync(`${path}.new`, path);
  };
  write(JSON.stringify(settings));
  const logs: Record<string, unknown>[] = [];
  const log = makeLogger({ write: (line) => void logs.push(JSON.parse(line)), now: Date.now, debug: false });
  const sources = { env: {}, flags: { config: path, home }, home };
  const runtime = { ...makeFakeRuntime(), ...scriptedRuntime(() => ({ text: "done" })) };
  const models = { modelNames: async () => names, canChat: async (name: string) => !mute.includes(name) };
  const config = readConfig(sources);
  const gateway = (await openGateway({ sources, config, runtime, models, log }))!; // it has sections
  const { url, close } = await listen(gateway);
  await gateway.start();
  afterTest(async () => {
    await close();
    await gateway.stop(0);
  });
  const post = async (path: string, body: object, headers = {}): Promise<{ status: number; body: any }> => {
    const response = await fetch(`${url}/hooks/${path}`, {
      method: "POST",
      headers: { authorization: `Bearer ${TOKEN}`, ...headers },
      body: JSON.stringify(body),
    });
    return { status: response.status, body: await response.json().catch(() => undefined) };
  };
  const said = (level: string): string[] =>
    logs.filter((each) => each["level"] === level).map((each) => JSON.stringify(each));
  const ids = async (): Promise<string[]> => (await gateway.admin.findings()).map(({ id }) => id);
  return { home, gateway, write, post, said, ids, runtime };
}

async function listen(gateway: NonNullable<Awaited<ReturnType<typeof openGateway>>>) {
  const harness = await makeHarness({}, { hooks: () => gateway.ingress });
  return { url: harness.listen().url, close: () => harness.close() };
}

test("a file that the next start would refuse is refused and reported at run time, and the last valid one stays", async () => {
  const at = await opened(right);
  const text = JSON.stringify(right);
  writeFileSync(join(at.home, "more.json5"), `{ chanels: {} }`);
  for (const [wrong, message] of [
    [text.replace("hooks", "hoks"), "unknown setting 'hoks': did you mean 'hooks'?"],
    [text.replace("hooks", "Hooks"), "unknown setting 'Hooks': did you mean 'hooks'?"],
    [
      `{ $include: "./more.json5", ${text.slice(1)}`,
      "more.json5:1: unknown setting 'chanels': did you mean 'channels'?",
    ],
    [`{ models: { foldr: "/a" }, ${text.slice(1)}`, "unknown setting 'models.foldr': did you mean 'models.folder'?"],
    [`{ numParallel: "many", ${text.slice(1)}`, "setting 'numParallel': expected"],
    [`{ colour: 1, ${text.slice(1)}`, "unknown setting 'colour'; known: home, host"],
    [text.replace("enabled", "enbled"), "hooks.enbled: unknown key; did you mean 'enabled'?"],
    ["[]", "expected an object of settings, got []"],
    ["", "not JSON5"],
  ] as const) {
    const before = at.said("error").length;
    at.write(wrong);
    expect(await eventually(() => at.said("error").length > before, WAIT_MS)).toBe(true);
    expect(at.said("error").at(-1)).toContain(message);
    expect((await at.post("wake", { text: "hi", mode: "next-heartbeat" })).status).toBe(200);
    expect(await at.ids()).toEqual(["invalid"]);
    expect((await at.gateway.status()).findings).toEqual([
      expect.stringContaining("the current configuration file is invalid"),
    ]);
  }
  expect(at.said("info").filter((line) => line.includes("reloaded"))).toEqual([]);
  at.write(text);
  expect(await eventually(async () => (await at.gateway.status()).findings === undefined, WAIT_MS)).toBe(true);
  expect(await at.ids()).not.toContain("invalid");
}, 240_000);

test("only the new findings of a changed file are logged", async () => {
  const at = await opened(right);
  const warnings = (id: string): number => at.said("warn").filter((line) => line.includes(`"${id}"`)).length;
  at.write(JSON.stringify({ ...right, hooks: { ...hooks, token: "short-token" } }));
  expect(await eventually(() => warnings("token-short") === 1, WAIT_MS)).toBe(true);
  const mappings = [{ match: { path: "a" }, messageTemplate: "x", deliver: false, allowUnsafeExternalContent: true }];
  at.write(JSON.stringify({ ...right, hooks: { ...hooks, token: "short-token", mappings } }));
  expect(await eventually(() => warnings("unsafe-content") === 1, WAIT_MS)).toBe(true);
  expect(warnings("token-short")).toBe(1);
  at.write(`{ session: {}, ${JSON.stringify(right).slice(1, -1)}, session: {} }`);
  expect(await eventually(() => warnings("repeated-key") === 1, WAIT_MS)).toBe(true);
}, 120_000);

test("a missing model is a finding, and its runs wait without using attempts until it exists", async () => {
  const names = ["hearth:latest"];
  const agents = {
    defaults: { ...quiet.defaults, model: "small", models: { "qwen3:4b": { alias: "small" }, hearth: {}, m: {} } },
    list: [{ id: "b", model: "hearth" }],
  };
  const mappings = [{ match: { path: "own" }, messageTemplate: "hello", deliver: false, model: "m" }];
  const at = await opened({ hooks: { ...hooks, mappings }, agents }, { names, mute: [] });
  const missing = at.said("error").filter((line) => line.includes("model-missing"));
  expect(missing).toEqual([
    expect.stringContaining("model 'qwen3:4b' is not there: its runs wait"),
    expect.stringContaining("model 'm' is not there"),
  ]);
  expect((await at.gateway.status()).findings?.length).toBe(2);
  const direct = await at.post("agent", { message: "hi", deliver: false });
  expect(direct).toMatchObject({
    status: 202,
    body: { warnings: [expect.stringContaining("'qwen3:4b' is missing")] },
  });
  const mapped = await at.post("own", {});
  expect(mapped).toMatchObject({ status: 202, body: { warnings: [expect.stringContaining("'m' is missing")] } });
  // its sender's fault
  expect((await at.post("agent", { message: "hi", deliver: false, model: "m" })).status).toBe(400);
  const other = await at.post("agent", { message: "hi", deliver: false, agentId: "b" });
  expect(other.body.warnings).toBeUndefined();
  const run = async (id: string) => (await at.gateway.deliveries.run(id))!; // accepted above
  const waits = async (id: string) => {
    const { state, attempts, reason } = await run(id);
    return state === "queued" && attempts === 0 && reason?.includes("not found") === true;
  };
  expect(await eventually(() => waits(direct.body.runId), WAIT_MS)).toBe(true);
  expect(await eventually(() => waits(mapped.body.runId), WAIT_MS)).toBe(true);
  names.push("qwen3:4b", "m:latest");
  for (const { body } of [direct, mapped]) {
    expect(await eventually(async () => (await run(body.runId)).state === "succeeded", WAIT_MS)).toBe(true);
    expect((await run(body.runId)).attempts).toBe(1);
  }
  expect((await at.gateway.status()).findings).toBeUndefined();
  expect(at.said("warn").filter((line) => line.includes("the model is unavailable")).length).toBe(2); // one for each
}, 240_000);

test("a heartbeat waits for its missing model, and is logged once", async () => {
  const names = ["hearth:latest"];
  const agents = { defaults: { heartbeat: { every: 0, target: "none", model: "gone" } } };
  const at = await opened({ hooks, agents }, { names, mute: [] });
  expect((await at.gateway.admin.findings()).find(({ id }) => id === "model-missing")).toMatchObject({
    key: "agents.defaults.heartbeat.model",
  });
  const failed = (): boolean => at.gateway.heartbeat.status?.kind === "failed";
  await at.post("wake", { text: "hi" });
  expect(await eventually(failed, WAIT_MS)).toBe(true);
  const first = at.gateway.heartbeat.status!.at; // it failed
  expect(await eventually(() => at.gateway.heartbeat.status!.at > first, WAIT_MS)).toBe(true);
  expect(at.said("warn").filter((line) => line.includes(`"msg":"heartbeat"`)).length).toBe(1);
  names.push("gone:latest");
  expect(await eventually(() => !failed(), WAIT_MS)).toBe(true);
}, 240_000);

test("a model that writes no text is a finding", async () => {
  const at = await opened(right, { names: ["hearth:latest"], mute: ["hearth:latest"] });
  expect(await at.ids()).toContain("model-cannot-chat");
  expect((await at.gateway.status()).findings).toEqual([expect.stringContaining("it makes embeddings")]);
}, 60_000);

test("replies that fail repeatedly are a finding until one is sent", async () => {
  const chat = startChat();
  chat.answer = () => Response.json({ ok: false, error_code: 400, description: "chat not found" }, { status: 400 });
  const channels = { telegram: { botToken: "1:a", baseUrl: chat.url, defaultTo: "42", spacingMs: 0 } };
  const at = await opened({ ...right, channels });
  const replied = async (state: string): Promise<void> => {
    const { body } = await at.post("agent", { message: "hi" });
    const is = async (): Promise<boolean> => (await at.gateway.deliveries.run(body.runId))?.reply === state;
    expect(await eventually(is, WAIT_MS)).toBe(true);
  };
  const found = async (): Promise<string> => String((await at.gateway.status()).findings);
  for (let i = 0; i < 3; i++) await replied("failed");
  const finding = "the last 3 replies to channel 'telegram' failed";
  expect(await eventually(async () => (await found()).includes(finding), WAIT_MS)).toBe(true);
  chat.answer = () => Response.json({ ok: true, result: { message_id: 1 } });
  await replied("sent");
  expect(await eventually(async () => (await found()) === "undefined", WAIT_MS)).toBe(true);
}, 240_000);

test("unreachable models are a finding and do not delay the start", async () => {
  const models = { modelNames: () => new Promise<readonly string[]>(() => {}) };
  const snapshot = makeSnapshot(undefined, { folder: "/", apiKeys: [] });
  const found = await auditModels(snapshot, models);
  expect(found).toMatchObject([{ id: "models-unknown", severity: "warn", message: expect.stringContaining("in 2 s") }]);
}, 60_000);
