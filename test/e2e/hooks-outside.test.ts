/** The gateway of the real program and the outside: callbacks, other processes, broken plugins, shutdown. */
import { afterEach, expect, setDefaultTimeout, test } from "bun:test";
import { mkdirSync, mkdtempSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { Webhook } from "standardwebhooks";
import { putModel } from "../library/fixture.ts";
import { eventually, startHearth, type Hearth } from "./hearth.ts";

setDefaultTimeout(300_000); // 15 s alone

const TOKEN = "a-hook-token-of-32-characters-xx";
const SECRET = `whsec_${Buffer.from("a secret of thirty-two bytes ....").toString("base64")}`;
const WAIT_MS = 120_000;

const cleanups: (() => unknown)[] = [];
afterEach(async () => {
  for (const cleanup of cleanups.splice(0).toReversed()) await cleanup();
});

const quiet = { defaults: { heartbeat: { every: 0, target: "none" } } };

/** @param text of the configuration; an object is written as JSON */
function makeHome(settings: object): string {
  const home = mkdtempSync(join(tmpdir(), "hearth-outside-"));
  cleanups.push(() => rmSync(home, { recursive: true, force: true }));
  mkdirSync(join(home, ".hearth"));
  const { hooks = {}, ...rest } = settings as { hooks?: object };
  const root = { agents: quiet, ...rest, hooks: { enabled: true, token: TOKEN, ...hooks } };
  writeFileSync(join(home, ".hearth", "hearth.json5"), JSON.stringify(root, null, 1), { mode: 0o600 });
  return home;
}

async function start(home: string): Promise<Hearth> {
  const hearth = await startHearth({ home, isSteady: true });
  cleanups.push(() => hearth.stop());
  return hearth;
}

const call = (hearth: Hearth, path: string, body?: unknown): Promise<Response> =>
  fetch(`${hearth.url}/hooks/${path}`, {
    method: body === undefined ? "GET" : "POST",
    headers: { authorization: `Bearer ${TOKEN}`, "content-type": "application/json" },
    ...(body === undefined ? {} : { body: JSON.stringify(body) }),
  });

interface Received {
  readonly headers: Record<string, string>;
  readonly body: string;
}

/** Receives callbacks on the loopback interface; answers with these statuses, repeating the last one. */
function listen(...statuses: number[]) {
  const received: Received[] = [];
  const server = Bun.serve({
    port: 0,
    hostname: "127.0.0.1",
    async fetch(request) {
      received.push({ headers: Object.fromEntries(request.headers), body: await request.text() });
      return new Response(null, { status: statuses[Math.min(received.length, statuses.length) - 1]! });
    },
  });
  cleanups.push(() => server.stop(true));
  return { url: `http://127.0.0.1:${server.port}/done`, received };
}

async function runOf(hearth: Hearth, body: object, path = "agent"): Promise<string> {
  const response = await call(hearth, path, body);
  const text = await response.text();
  if (response.status !== 202) throw new Error(`${response.status}: ${text}`);
  return (JSON.parse(text) as { runId: string }).runId;
}

const statusOf = async (hearth: Hearth, runId: string): Promise<any> =>
  ((await (await call(hearth, `runs/${runId}`)).json()) as { run: unknown }).run;

test("callbackUrl gets the signed outcome of a run, success or failure, and gets it again until it answers 2xx", async () => {
  const home = makeHome({
    hooks: { callbacks: { allowFromRequest: true, allowPrivateAddresses: true, secret: SECRET } },
  });
  await putModel(join(home, ".hearth", "models"), "broken");
  const hearth = await start(home);
  const good = listen(204);
  const bad = listen(204);
  const slow = listen(500, 503, 200);
  const ids = {
    good: await runOf(hearth, { message: "Hello!", deliver: false, callbackUrl: good.url }),
    bad: await runOf(hearth, { message: "Hello!", deliver: false, model: "broken", callbackUrl: bad.url }),
    slow: await runOf(hearth, { message: "Hello!", deliver: false, callbackUrl: slow.url }),
  };
  const isDone = (): boolean => good.received.length >= 1 && bad.received.length >= 1 && slow.received.length >= 3;
  expect(await eventually(isDone, WAIT_MS)).toBe(true);
  const verified = ({ headers, body }: Received): any => new Webhook(SECRET).verify(body, headers);
  const answer = (await statusOf(hearth, ids.good)).answer;
  expect(answer.trim()).not.toBe("");
  expect(verified(good.received[0]!)).toMatchObject({
    type: "run.succeeded",
    data: { runId: ids.good, state: "succeeded", answer, reply: "none" },
  });
  const failed = verified(bad.received[0]!);
  expect(failed).toMatchObject({ data: { runId: ids.bad, answer: null } });
  expect([failed.type, failed.data.reason]).toEqual([`run.${failed.data.state}`, expect.stringMatching(/./)]);
  expect(["failed", "dead"]).toContain(failed.data.state);
  for (const each of slow.received) expect(verified(each)).toMatchObject({ type: "run.succeeded" });
  expect(new Set(slow.received.map(({ headers }) => headers["webhook-id"]))).toEqual(new Set([ids.slow]));
  const { headers, body } = good.received[0]!;
  expect(() => new Webhook(SECRET).verify(body.replace("succeeded", "failed"), headers)).toThrow();
  expect(await eventually(async () => (await statusOf(hearth, ids.slow)).callback === "sent", WAIT_MS)).toBe(true);
});

test("callbackUrl with an address of this machine is refused in a request, and not called from a mapping", async () => {
  const secretService = listen(200);
  const https = secretService.url.replace("http:", "https:");
  const mapping = (path: string, callbackUrl: string) => ({
    match: { path },
    messageTemplate: "Hello!",
    deliver: false,
    callbackUrl,
  });
  const home = makeHome({
    hooks: {
      callbacks: { allowFromRequest: true, secret: SECRET },
      mappings: [mapping("address", https), mapping("name", https.replace("127.0.0.1", "localhost"))],
    },
  });
  const hearth = await start(home);
  for (const callbackUrl of [https, "https://[::1]/", "https://10.0.0.1/", "https://169.254.169.254/", "http://a.b/"]) {
    const refused = await call(hearth, "agent", { message: "Hello!", callbackUrl });
    expect([callbackUrl, refused.status, await refused.json()]).toEqual([
      callbackUrl,
      400,
      expect.objectContaining({ code: "callback_not_allowed" }),
    ]);
  }
  for (const path of ["address", "name"]) {
    const runId = await runOf(hearth, {}, path);
    expect(await eventually(async () => (await statusOf(hearth, runId)).callback === "failed", WAIT_MS)).toBe(true);
    expect((await statusOf(hearth, runId)).state).toBe("succeeded");
  }
  expect(secretService.received).toEqual([]);
});

test("a second server with the same home does not start, and names the process of the first", async () => {
  const home = makeHome({});
  const first = await start(home);
  const second = startHearth({ home, isSteady: true });
  await expect(second).rejects.toThrow(`the gateway in '${join(home, ".hearth")}' is in use by process ${first.pid}`);
  expect((await call(first, "wake", { text: "x", mode: "next-heartbeat" })).status).toBe(200);
});

test("a plugin that cannot be loaded disables its channel only; the server starts and reports it", async () => {
  const home = makeHome({ channels: { plugins: ["./pager.ts"], pager: { room: "7" } } });
  writeFileSync(join(home, ".hearth", "pager.ts"), "export default 5 +;");
  const hearth = await start(home);
  const warned = () => hearth.log().filter((line) => line.includes("a channel cannot be used"));
  expect(await eventually(() => warned().length > 0, WAIT_MS)).toBe(true);
  expect(JSON.parse(warned()[0]!)).toMatchObject({
    level: "warn",
    key: "channels.plugins[0]",
    problem: expect.stringContaining("the plugin './pager.ts' cannot be used"),
  });
  const refused = await call(hearth, "agent", { message: "x", channel: "pager" });
  expect([refused.status, ((await refused.json()) as { code: string }).code]).toEqual([400, "channel_not_allowed"]);
});

test("settings that a plugin refuses are a start error that names file, line and key", async () => {
  const home = makeHome({ channels: { plugins: ["mattermost"], mattermost: { baseUrl: 5 } } });
  await expect(startHearth({ home, isSteady: true })).rejects.toThrow(
    /hearth\.json5:\d+.*channels\.mattermost\.baseUrl/,
  );
});

test("after SIGTERM senders get 503 with Retry-After while a run ends, and the server exits with 0", async () => {
  const held = Promise.withResolvers<void>();
  const chat = Bun.serve({
    port: 0,
    hostname: "127.0.0.1",
    async fetch() {
      await held.promise; // the reply is under way for as long as the server waits for it
      return Response.json({ ok: true, result: { message_id: 1 } });
    },
  });
  cleanups.push(() => chat.stop(true));
  cleanups.push(() => held.resolve());
  const baseUrl = `http://127.0.0.1:${chat.port}`;
  const home = makeHome({ channels: { telegram: { botToken: "1:a", baseUrl, defaultTo: "42" } } });
  const hearth = await start(home);
  const runId = await runOf(hearth, { message: "Tell me a story about a fox." });
  const events = await call(hearth, `runs/${runId}/events`);
  for await (const bytes of events.body!) if (new TextDecoder().decode(bytes).includes("event: text")) break;
  hearth.process.kill("SIGTERM");
  let refused: Response | undefined;
  await eventually(async () => {
    refused = await call(hearth, "wake", { text: "late", mode: "next-heartbeat" }).catch(() => refused);
    return refused?.status === 503 || hearth.process.exitCode !== null;
  }, WAIT_MS);
  if (!refused) throw new Error("no answer at all");
  expect([refused.status, ((await refused.json()) as { code: string }).code]).toEqual([503, "shutting_down"]);
  expect(Number(refused.headers.get("retry-after"))).toBeGreaterThan(0);
  expect(await hearth.process.exited).toBe(0);
});
