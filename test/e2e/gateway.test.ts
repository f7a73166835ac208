/** The gateway of the real program: webhooks over a socket, turns on the embedded model, messages to a chat. */
import { afterEach, expect, test } from "bun:test";
import { mkdirSync, mkdtempSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { Database } from "bun:sqlite";
import { eventually, startHearth, type Hearth } from "./hearth.ts";

const TOKEN = "a-hook-token-of-32-characters-xx";
const WAIT_MS = 120_000;

interface Sent {
  readonly chat_id: unknown;
  readonly text: string;
}

/** The used part of Telegram's API for sending a text. */
function telegram() {
  const sent: Sent[] = [];
  const server = Bun.serve({
    port: 0,
    hostname: "127.0.0.1",
    async fetch(request) {
      if (new URL(request.url).pathname !== "/bot123:abc/sendMessage") return new Response(null, { status: 404 });
      sent.push((await request.json()) as Sent);
      return Response.json({ ok: true, result: { message_id: sent.length } });
    },
  });
  return { url: `http://127.0.0.1:${server.port}`, sent, stop: () => server.stop(true) };
}

const cleanups: (() => unknown)[] = [];
afterEach(async () => {
  for (const cleanup of cleanups.splice(0).toReversed()) await cleanup();
});

function makeHome(settings: object): string {
  const home = mkdtempSync(join(tmpdir(), "hearth-gateway-"));
  cleanups.push(() => rmSync(home, { recursive: true, force: true }));
  mkdirSync(join(home, ".hearth"));
  writeFileSync(join(home, ".hearth", "hearth.json5"), JSON.stringify(settings), { mode: 0o600 });
  return home;
}

async function start(home: string, env: Record<string, string> = {}): Promise<Hearth> {
  const hearth = await startHearth({ home, isSteady: true, env });
  cleanups.push(() => hearth.stop());
  return hearth;
}

const call = (hearth: Hearth, path: string, body: unknown, headers: Record<string, string> = {}): Promise<Response> =>
  fetch(`${hearth.url}/hooks/${path}`, {
    method: "POST",
    headers: { authorization: `Bearer ${TOKEN}`, "content-type": "application/json", ...headers },
    body: JSON.stringify(body),
  });

interface RunRow {
  readonly id: string;
  readonly state: string;
  readonly reply: string;
  readonly answer: string | null;
}

function runs(home: string): RunRow[] {
  using db = new Database(join(home, ".hearth", "gateway.db"), { readonly: true });
  return db.query<RunRow, []>("SELECT id, state, reply, answer FROM runs ORDER BY seq").all();
}

const settings = (baseUrl: string) => ({
  hooks: {
    enabled: true,
    token: TOKEN,
    presets: ["github"],
    mappings: [{ id: "ci", match: { path: "ci" }, messageTemplate: "Build {{payload.n}} failed", deliver: false }],
  },
  channels: { telegram: { botToken: "123:abc", baseUrl, defaultTo: "42" } },
  agents: { defaults: { heartbeat: { every: 0, target: "none" } } },
});

test("POST {hooks.path}/agent runs a turn on the model and sends its answer to the chat, once for a repeated request", async () => {
  const chat = telegram();
  cleanups.push(chat.stop);
  const home = makeHome(settings(chat.url));
  const hearth = await start(home);
  const body = { message: "Hello! Who are you?", name: "Test", wakeMode: "next-heartbeat" };
  const answer = await call(hearth, "agent", body, { "idempotency-key": "once" });
  expect(answer.status).toBe(202);
  const { runId } = (await answer.json()) as { runId: string };
  expect(await eventually(() => runs(home)[0]?.reply === "sent", WAIT_MS)).toBe(true);
  const [run] = runs(home) as [RunRow];
  expect(run).toMatchObject({ id: runId, state: "succeeded" });
  expect(run.answer?.trim()).not.toBe("");
  expect(chat.sent.map(({ chat_id, text }) => [String(chat_id), text.trim()])).toEqual([["42", run.answer!.trim()]]);
  const again = await call(hearth, "agent", body, { "idempotency-key": "once" });
  expect(again.headers.get("idempotency-replayed")).toBe("true");
  expect(await again.json()).toMatchObject({ runId });
  expect((await call(hearth, "agent", { message: "other" }, { "idempotency-key": "once" })).status).toBe(409);
  using db = new Database(join(home, ".hearth", "gateway.db"), { readonly: true });
  expect(JSON.stringify(db.query("SELECT text FROM session_events").all())).toContain("Hook Test: ");
  expect(runs(home)).toHaveLength(1);
}, 300_000);

test("turns that were accepted before kill -9 run once after the next start", async () => {
  const chat = telegram();
  cleanups.push(chat.stop);
  const home = makeHome(settings(chat.url));
  const first = await start(home, { HEARTH_SPARE_RUNNER: "true" });
  // a runner that does not answer, so that no reply is under way when the server is killed: it might arrive or not
  expect(await eventually(async () => (await first.runnerPids()).length > 0, WAIT_MS)).toBe(true);
  const runners = await first.runnerPids();
  for (const pid of runners) process.kill(pid, "SIGSTOP");
  const accepted: string[] = [];
  for (let i = 0; i < 3; i++) {
    const answer = await call(first, "agent", { message: `Tell me about ${i}`, sessionKey: "hook:talk" });
    accepted.push(((await answer.json()) as { runId: string }).runId);
  }
  await first.stop(); // SIGKILL
  for (const pid of runners) process.kill(pid, "SIGCONT"); // it ends
  const second = await start(home);
  expect(await eventually(() => runs(home).every((run) => run.reply === "sent"), WAIT_MS)).toBe(true);
  expect(runs(home).map((run) => run.id)).toEqual(accepted);
  expect(chat.sent).toHaveLength(3);
  using db = new Database(join(home, ".hearth", "gateway.db"), { readonly: true });
  const stored = db
    .query<{ run_id: string }, []>(
      "SELECT run_id FROM session_entries WHERE session_key LIKE '%:hook:talk' GROUP BY run_id ORDER BY min(seq)",
    )
    .all();
  expect(stored.map((row) => row.run_id)).toEqual(accepted); // one conversation, in order
  second.process.kill("SIGTERM");
  expect(await second.process.exited).toBe(0);
}, 300_000);

test("after SIGTERM during a turn the server ends in time, and the turn runs after the next start", async () => {
  const chat = telegram();
  cleanups.push(chat.stop);
  const home = makeHome(settings(chat.url));
  const first = await start(home);
  await call(first, "ci", { n: 7 });
  first.process.kill("SIGTERM");
  expect(await first.process.exited).toBe(0);
  await start(home);
  expect(await eventually(() => runs(home)[0]?.state === "succeeded", WAIT_MS)).toBe(true);
  expect(runs(home)).toHaveLength(1);
}, 300_000);

test("without a gateway in the configuration there is no database and no endpoint", async () => {
  const home = makeHome({});
  const hearth = await start(home);
  expect((await call(hearth, "wake", { text: "x" })).status).toBe(404);
  expect(await Bun.file(join(home, ".hearth", "gateway.db")).exists()).toBe(false);
}, 60_000);

test("a configuration that cannot be used is an error at the start that names its key", async () => {
  const home = makeHome({ hooks: { enabled: true } });
  await expect(startHearth({ home, isSteady: true })).rejects.toThrow(
    "hooks.token: required when hooks.enabled is true",
  );
}, 60_000);
