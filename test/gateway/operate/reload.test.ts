/** A configuration file that changes under a gateway that runs: real file, real socket. */
import { expect, test } from "bun:test";
import { mkdtempSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { afterTest } from "../../cleanups.ts";
import { eventually } from "../../e2e/hearth.ts";
import { quiet, startChat, startGateway, TOKEN } from "./fixtures.ts";

const WAIT_MS = 60_000;
/** The first one of a channel that refuses its token: src/gateway/channels/outbox/outages.ts. */
const PAUSE_MS = 15_000;
const OTHER = "another-hook-token-of-32-letters";

const hooks = { enabled: true, token: TOKEN };
const wake = { text: "hi", mode: "next-heartbeat" };

test("a new token works at once, and the old one does not", async () => {
  const bench = await startGateway({ hooks, agents: quiet });
  expect((await bench.post("wake", wake)).status).toBe(200);
  bench.configure({ hooks: { ...hooks, token: OTHER }, agents: quiet });
  expect(await eventually(async () => (await bench.post("wake", wake, OTHER)).status === 200, WAIT_MS)).toBe(true);
  expect((await bench.post("wake", wake)).status).toBe(401);
}, 120_000);

test("hooks that are switched off get 404 until they are switched on again", async () => {
  const bench = await startGateway({ hooks, agents: quiet });
  const becomes = (status: number) =>
    eventually(async () => (await bench.post("wake", wake)).status === status, WAIT_MS);
  expect(await becomes(200)).toBe(true);
  bench.configure({ hooks: { ...hooks, enabled: false }, agents: quiet });
  expect(await becomes(404)).toBe(true);
  bench.configure({ hooks, agents: quiet });
  expect(await becomes(200)).toBe(true);
}, 120_000);

test("a mapping that is added accepts requests and runs them", async () => {
  const bench = await startGateway({ hooks, agents: quiet });
  expect((await bench.post("ci", { n: 7 })).status).toBe(404);
  const mappings = [{ match: { path: "ci" }, messageTemplate: "Build {{payload.n}}", deliver: false }];
  bench.configure({ hooks: { ...hooks, mappings }, agents: quiet });
  expect(await eventually(async () => (await bench.post("ci", { n: 7 })).status === 202, WAIT_MS)).toBe(true);
  expect(await eventually(() => bench.prompts().some((prompt) => prompt.includes("Build ")), WAIT_MS)).toBe(true);
}, 120_000);

test("replies to a channel that refuses its token wait, and arrive in order once the file has a new one", async () => {
  const chat = startChat();
  const taken: (string | undefined)[] = [];
  let refusedAt: number | undefined;
  chat.answer = (path) => {
    if (path.startsWith("/bot1:new/")) {
      taken.push(chat.sent.at(-1));
      return Response.json({ ok: true, result: { message_id: 1 } });
    }
    refusedAt ??= performance.now();
    return Response.json({ ok: false, description: "Unauthorized" }, { status: 401 });
  };
  const channels = (botToken: string) => ({ telegram: { botToken, baseUrl: chat.url, defaultTo: "42", spacingMs: 0 } });
  const bench = await startGateway(
    { hooks, channels: channels("1:old"), agents: quiet },
    { script: (_, i) => ({ text: `answer ${i}` }) },
  );
  const runIds: string[] = [];
  for (let i = 0; i < 3; i++) {
    const message = { message: "hi", channel: "telegram", wakeMode: "next-heartbeat", sessionKey: "hook:one" };
    runIds.push(((await (await bench.post("agent", message)).json()) as { runId: string }).runId);
  }
  const replies = () => Promise.all(runIds.map(async (id) => (await bench.gateway.deliveries.run(id))!));
  const waiting = async (): Promise<boolean> =>
    (await replies()).every(({ reply, replyReason }) => reply === "pending" && replyReason !== null);
  expect(await eventually(waiting, WAIT_MS)).toBe(true); // the later ones wait for the first
  const reason = "telegram: answered 401: Unauthorized";
  expect((await replies()).map(({ replyReason }) => replyReason)).toEqual([reason, reason, reason]);
  expect((await bench.gateway.status()).findings).toEqual([
    "channel 'telegram' refuses our credentials, for 0 min: its replies wait, a day at most; replace its token",
  ]);
  bench.configure({ hooks, channels: channels("1:new"), agents: quiet });
  expect(await eventually(async () => (await replies()).every(({ reply }) => reply === "sent"), WAIT_MS)).toBe(true);
  expect(taken).toEqual(["42: answer 0", "42: answer 1", "42: answer 2"]);
  expect(await bench.gateway.status()).not.toHaveProperty("findings");
  if (performance.now() - refusedAt! > PAUSE_MS) return; // the pause may have ended meanwhile
  expect(bench.logs.map(({ msg }) => msg)).not.toContain("a channel takes our credentials again");
}, 120_000);

test("an invalid file changes nothing and is logged with its place, and the next valid one applies", async () => {
  const bench = await startGateway({ hooks, agents: quiet });
  const failures = (): unknown[] => bench.logs.filter(({ level }) => level === "error").map(({ error }) => error);
  for (const [text, place] of [
    ["{ hooks: {\n enabled: 'maybe' } }", "hearth.json5:2: hooks.enabled: "],
    ["{ hooks: ", "hearth.json5"],
    ["", "hearth.json5"],
  ] as const) {
    const before = failures().length;
    bench.configure(text);
    expect(await eventually(() => failures().length > before, WAIT_MS)).toBe(true);
    expect(failures().at(-1)).toContain(place);
    expect((await bench.post("wake", wake)).status).toBe(200);
  }
  bench.configure({ hooks: { ...hooks, token: OTHER }, agents: quiet });
  expect(await eventually(async () => (await bench.post("wake", wake, OTHER)).status === 200, WAIT_MS)).toBe(true);
}, 240_000);

test("a missing file keeps the last settings", async () => {
  const bench = await startGateway({ hooks, agents: quiet });
  bench.configure({ hooks: { ...hooks, token: OTHER }, agents: quiet });
  expect(await eventually(async () => (await bench.post("wake", wake, OTHER)).status === 200, WAIT_MS)).toBe(true);
  rmSync(join(bench.folder, "hearth.json5"));
  const isLogged = () => bench.logs.some(({ msg }) => String(msg).includes("the configuration file is gone"));
  expect(await eventually(isLogged, WAIT_MS)).toBe(true);
  expect((await bench.post("wake", wake, OTHER)).status).toBe(200);
  expect((await bench.post("wake", wake)).status).toBe(401);
}, 120_000);

test("a channel that is added later sends its waiting messages", async () => {
  const chat = startChat();
  const bench = await startGateway({ hooks, agents: quiet });
  await bench.gateway.store.write(() =>
    bench.gateway.outbox.add({
      groupId: "g",
      target: { channel: "telegram", to: "42" },
      text: "hello",
      now: Date.now(),
    }),
  );
  bench.gateway.outbox.poke();
  const waits = (): boolean => bench.logs.some(({ reason }) => reason === "channel 'telegram' is not configured");
  expect(await eventually(waits, WAIT_MS)).toBe(true);
  bench.configure({ hooks, agents: quiet, channels: { telegram: { botToken: "123:abc", baseUrl: chat.url } } });
  expect(await eventually(() => chat.sent.length > 0, WAIT_MS)).toBe(true);
  expect(chat.sent).toEqual(["42: hello"]);
}, 120_000);

test("a heartbeat that is switched on runs without a restart", async () => {
  const bench = await startGateway({ hooks, agents: quiet });
  await bench.post("wake", { text: "disk full", mode: "next-heartbeat" });
  expect(await eventually(async () => (await bench.events()).length === 1, WAIT_MS)).toBe(true);
  bench.configure({ hooks, agents: { defaults: { heartbeat: { every: "1s", target: "none" } } } });
  expect(await eventually(async () => (await bench.events()).length === 0, WAIT_MS)).toBe(true);
  expect(bench.prompts()[0]).toContain("disk full");
}, 120_000);

test("an invalid section of a plugin is logged with key and line, and disables only that channel", async () => {
  const chat = startChat();
  const telegram = { botToken: "123:abc", baseUrl: chat.url };
  const bench = await startGateway({ hooks, agents: quiet, channels: { telegram } });
  bench.configure(
    `{ hooks: ${JSON.stringify(hooks)}, channels: { telegram: ${JSON.stringify(telegram)}, plugins: ["mattermost"],
  mattermost: { baseUrl: "${chat.url}",
    botTokne: "x" } } }`,
  );
  const logged = () => bench.logs.find(({ key }) => key === "channels.mattermost.botTokne");
  expect(await eventually(() => logged() !== undefined, WAIT_MS)).toBe(true);
  expect(logged()).toMatchObject({
    problem: "unknown key; did you mean 'botToken'?",
    where: expect.stringContaining("hearth.json5:3"),
  });
  expect([...bench.gateway.channels.channels.keys()]).toEqual(["telegram"]);
}, 120_000);

test("a channel with unusable new settings keeps its old ones, and one without old ones is logged as unusable", async () => {
  const chat = startChat();
  const telegram = (more: object) => ({ telegram: { botToken: "123:abc", baseUrl: chat.url, ...more } });
  const bench = await startGateway({ hooks, agents: quiet, channels: telegram({ defaultTo: "42" }) });
  const slack = { botToken: "xoxb-1", baseUrl: chat.url, defaultTo: "#general" };
  bench.configure({ hooks, agents: quiet, channels: { ...telegram({ defaultTo: "no chat" }), slack } });
  const logged = (key: string) => bench.logs.find((line) => line["key"] === key)?.["msg"];
  expect(await eventually(() => logged("channels.slack") !== undefined, WAIT_MS)).toBe(true);
  expect([logged("channels.telegram"), logged("channels.slack")]).toEqual([
    "a channel cannot be used as configured now: its old settings stay in force",
    "a channel cannot be used",
  ]);
  const ask = async (body: object): Promise<string> => {
    const answer = await bench.post("agent", { message: "hi", wakeMode: "next-heartbeat", ...body });
    return ((await answer.json()) as { runId: string }).runId;
  };
  await ask({ channel: "telegram", to: "7" });
  await ask({});
  expect(await eventually(() => chat.sent.length === 2, WAIT_MS)).toBe(true);
  expect(chat.sent.toSorted()).toEqual(["42: done", "7: done"]);
  const runId = await ask({ channel: "slack", to: "C0123456" });
  const run = () => bench.gateway.deliveries.run(runId);
  expect(await eventually(async () => (await run())?.reply === "failed", WAIT_MS)).toBe(true);
  expect((await run())?.replyReason).toBe("channel 'slack' cannot be used as it is configured");
  bench.configure({
    hooks,
    agents: quiet,
    channels: { telegram: { botToken: "1:a", defaultTo: "x y", enabled: false } },
  });
  expect(await eventually(() => bench.gateway.channels.channels.size === 0, WAIT_MS)).toBe(true);
}, 120_000);

test("a token changed in its file applies without a change of the configuration", async () => {
  const tokens: string[] = [];
  const platform = Bun.serve({
    port: 0,
    hostname: "127.0.0.1",
    fetch(request) {
      tokens.push(/bot([^/]+)/.exec(request.url)?.[1] ?? "");
      return Response.json({ ok: true, result: { message_id: 1 } });
    },
  });
  afterTest(() => platform.stop(true));
  const folder = mkdtempSync(join(tmpdir(), "hearth-token-"));
  afterTest(() => rmSync(folder, { recursive: true, force: true }));
  const tokenFile = join(folder, "token");
  writeFileSync(tokenFile, "123:old");
  const telegram = { tokenFile, baseUrl: `http://127.0.0.1:${platform.port}`, defaultTo: "42", spacingMs: 0 };
  const bench = await startGateway({ hooks, agents: quiet, channels: { telegram } });
  const isSent = async (token: string): Promise<boolean> => {
    const before = tokens.length;
    await bench.post("agent", { message: "hi", wakeMode: "next-heartbeat" });
    expect(await eventually(() => tokens.length > before, WAIT_MS)).toBe(true);
    return tokens.at(-1) === token;
  };
  expect(await isSent("123:old")).toBe(true);
  writeFileSync(tokenFile, "123:new");
  expect(await eventually(() => isSent("123:new"), WAIT_MS)).toBe(true);
  writeFileSync(tokenFile, ""); // as if it is being replaced
  expect(await eventually(() => bench.logs.some(({ key }) => key === "channels.telegram"), WAIT_MS)).toBe(true);
  expect(await isSent("123:new")).toBe(true);
}, 240_000);

test("hooks.queue.maxPerMapping: a mapping at its share gets 503 with Retry-After, and others are accepted", async () => {
  const mapping = (path: string, more = {}) => ({
    id: path,
    match: { path },
    messageTemplate: "x",
    deliver: false,
    ...more,
  });
  const mappings = [mapping("loud"), mapping("wide", { maxQueued: 3 })];
  const gate = Promise.withResolvers<void>();
  const bench = await startGateway(
    { hooks: { ...hooks, mappings, queue: { max: 10, maxPerMapping: 2 } }, agents: quiet },
    { script: () => ({ text: "done", until: gate.promise }) },
  );
  const send = async (path: string, n: number): Promise<number[]> => {
    const statuses: number[] = [];
    for (let i = 0; i < n; i++) statuses.push((await bench.post(path, { i })).status);
    return statuses;
  };
  expect(await send("loud", 3)).toEqual([202, 202, 503]);
  expect(await send("wide", 4)).toEqual([202, 202, 202, 503]);
  const full = await bench.post("loud", {});
  expect([full.headers.get("retry-after"), ((await full.json()) as { code: string }).code]).toEqual([
    "60", // no run has ended yet
    "queue_full",
  ]);
  expect((await bench.post("agent", { message: "hi", deliver: false })).status).toBe(202);
  gate.resolve();
  expect(await eventually(async () => (await bench.post("loud", {})).status === 202, WAIT_MS)).toBe(true);
}, 120_000);
