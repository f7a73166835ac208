/** `hearth hooks`, as separate processes against a real server. */
import { afterAll, beforeAll, expect, setDefaultTimeout, test } from "bun:test";
import { mkdirSync, mkdtempSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { eventually, runHearth, startHearth, type Hearth } from "./hearth.ts";

setDefaultTimeout(300_000); // 10 s alone

const TOKEN = "a-hook-token-of-32-characters-xx";
const SECRET = "a-secret-that-only-we-and-github-know";
const TRACEPARENT = "00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01";
/** A Telegram that refuses messages until it is mended. */
const chat = { isBroken: true, sent: 0 };
const telegram = Bun.serve({
  port: 0,
  hostname: "127.0.0.1",
  fetch: () => {
    if (chat.isBroken) return Response.json({ ok: false, description: "chat not found" }, { status: 400 });
    return Response.json({ ok: true, result: { message_id: ++chat.sent } });
  },
});
const SETTINGS = {
  gateway: { token: "a-gateway-token-of-32-characters" },
  hooks: {
    enabled: true,
    token: TOKEN,
    presets: ["github"],
    presetSettings: { github: { secrets: SECRET, deliver: false } },
    mappings: [
      {
        id: "ci",
        match: { path: "ci" },
        action: "wake",
        wakeMode: "next-heartbeat",
        textTemplate: "Build {{payload.n}}",
      },
      { id: "broken", match: { path: "broken" }, model: "none-{{ payload.n }}", messageTemplate: "x" },
    ],
  },
  channels: {
    telegram: { botToken: "1:a", baseUrl: `http://127.0.0.1:${telegram.port}`, defaultTo: "42", spacingMs: 0 },
  },
  agents: { defaults: { heartbeat: { every: 0, target: "none" } } },
};

const home = mkdtempSync(join(tmpdir(), "hearth-hooks-cli-"));
const file = (name: string, content: string): string => {
  writeFileSync(join(home, name), content, { mode: 0o600 });
  return join(home, name);
};
let hearth: Hearth;
beforeAll(async () => {
  mkdirSync(join(home, ".hearth"));
  file(".hearth/hearth.json5", JSON.stringify(SETTINGS));
  hearth = await startHearth({ home, isSteady: true });
});
afterAll(async () => {
  await hearth.stop();
  await telegram.stop(true);
  rmSync(home, { recursive: true, force: true });
});

const hooks = (...args: string[]) =>
  runHearth(["hooks", ...args], { home, env: { HEARTH_HOST: new URL(hearth.url).host } });

const wake = (n: number): Promise<Response> =>
  fetch(`${hearth.url}/hooks/ci`, {
    method: "POST",
    headers: { authorization: `Bearer ${TOKEN}`, traceparent: TRACEPARENT, tracestate: "congo=t61rcWkgMzE" },
    body: JSON.stringify({ n }),
  });

test("list, show and replay print tables, or JSON with --json", async () => {
  const { runId } = (await (await wake(7)).json()) as { runId: string };
  const own = async (): Promise<string> => (await hooks("list", "--mapping", "ci")).stdout; // others are of other tests
  expect(await eventually(async () => (await own()).includes("succeeded"))).toBe(true);
  expect(await own()).toMatch(
    /^DELIVERY +RECEIVED +PATH +MAPPING +ABOUT +SIZE +RUNS\n[0-9a-f-]+ +.* ago +\/ci +ci +Build 7 +7 B +succeeded\n$/,
  );
  const { deliveries } = JSON.parse((await hooks("list", "--json")).stdout);
  const shown = await hooks("show", deliveries[0].id);
  expect(shown.stdout).toMatch(/^credential +token main$/m);
  expect(shown.stdout).toContain(runId);
  expect(shown.stdout).toContain(TRACEPARENT);
  expect(shown.stdout).toMatch(/^trace state +congo=t61rcWkgMzE$/m);
  const replayed = await hooks("replay", runId, "--json");
  expect(JSON.parse(replayed.stdout).runIds).toHaveLength(1);
  expect(JSON.parse((await hooks("list", "--json", "--limit", "1")).stdout).deliveries[0].replayOf).toBe(
    deliveries[0].id,
  );
});

test("an unknown delivery and a wrong token are errors of one line with exit code 1", async () => {
  const missing = await hooks("show", "nothing");
  expect([missing.code, missing.stderr]).toEqual([1, "Error: no such delivery or run\n"]);
  const env = { HEARTH_HOST: new URL(hearth.url).host, HEARTH_GATEWAY_TOKEN: "wrong" };
  const refused = await runHearth(["hooks", "list"], { home, env });
  expect([refused.code, refused.stderr]).toEqual([
    1,
    "Error: the server refuses this key: check HEARTH_GATEWAY_TOKEN\n",
  ]);
});

test("test prints the rendered action, and exits with 1 if the request would be refused", async () => {
  const body = file("body.json", '{"n": 7}');
  const tried = await hooks("test", "ci", body);
  expect([tried.code, tried.stdout]).toEqual([
    0,
    expect.stringMatching(/^wake, next-heartbeat\n[\s\S]*Build <<<.*>>>7<<</),
  ]);
  const form = await hooks(
    "test",
    "ci",
    file("body.txt", "n=8"),
    "-H",
    "Content-Type: application/x-www-form-urlencoded",
  );
  expect([form.code, form.stdout]).toEqual([0, expect.stringMatching(/Build <<<.*>>>8<<</)]);
  const ping = await hooks("test", "github", body, "-H", "X-GitHub-Event: ping");
  expect(ping.stdout).toBe('a check of the address, answered 200:\n    {"ok":true,"ping":true}\n');
  const lines = await hooks("test", "ci", file("bad.txt", "{"), "-H", "Content-Type: text/html");
  expect([lines.code, lines.stderr]).toEqual([1, "Error: the request would be refused: invalid JSON\n"]);
  const refused = await hooks("test", "broken", body);
  expect([refused.code, refused.stderr]).toEqual([1, "Error: the request would be refused: no such model\n"]);
  expect((await hooks("test", "none", body)).stderr).toContain("no such mapping; known: ci, broken, github");
  expect((await hooks("test", "ci", file("bad.json", "{"))).stderr).toContain("bad.json: expected JSON");
  expect((await hooks("test", "ci", join(home, "none.json"))).stderr).toContain("none.json': there is no such file");
});

test("sign prints headers with which the server accepts a body as GitHub's", async () => {
  const payload = { action: "opened", repository: { full_name: "a/b" }, sender: { login: "ann" } };
  const body = file(
    "issue.json",
    JSON.stringify({ ...payload, issue: { number: 1, title: "It burns", html_url: "x" } }),
  );
  const signed = await hooks("sign", "github", body);
  expect(signed.code).toBe(0);
  const headers = Object.fromEntries(
    signed.stdout
      .trimEnd()
      .split("\n")
      .map((line) => line.split(": ")),
  );
  expect(Object.keys(headers).map((name) => name.toLowerCase())).toContain("x-hub-signature-256");
  const send = (more: Record<string, string>): Promise<Response> =>
    fetch(`${hearth.url}/hooks/github`, { method: "POST", body: Bun.file(body), headers: { ...headers, ...more } });
  const event = { "x-github-event": "issues", "content-type": "application/json" };
  expect((await send(event)).status).toBe(202);
  expect((await send({ ...event, "x-hub-signature-256": "sha256=00" })).status).toBe(401);
  const other = await runHearth(["hooks", "sign", "stripe", body, "--secret", "whsec_x"], { home });
  expect(other.stdout).toMatch(/^stripe-signature: t=\d+,v1=[0-9a-f]{64}\n$/i);
  expect((await runHearth(["hooks", "sign", "nobody", body], { home })).code).toBe(1);
  for (const [path, why] of [
    [join(home, "nowhere.json"), "there is no such file"],
    [home, "it is a folder"],
  ] as const) {
    const missing = await hooks("sign", "github", path);
    expect([missing.code, missing.stdout, missing.stderr]).toEqual([
      1,
      "",
      `Error: cannot read '${path}': ${why}; expected a file that holds the body of a request, or - for standard input\n`,
    ]);
  }
});

test("audit prints findings with file and line, without a server, and exits with 1 for errors only", async () => {
  const good = await runHearth(["hooks", "audit"], { home });
  expect(good.stdout).toMatch(/^SEVERITY +FINDING +WHERE +KEY +MESSAGE\n/);
  expect(good.stdout).toContain("token-literal");
  const config = file(
    "bad.json5",
    '{ hooks: { enabled: true,\n token: "x", mappings: [{ match: { path: "wake" } }] } }',
  );
  const bad = await runHearth(["hooks", "audit", "--json"], { home, env: { HEARTH_CONFIG: config } });
  expect(bad.code).toBe(1);
  expect(JSON.parse(bad.stdout).map(({ id }: { id: string }) => id)).toContain("reserved-path");
  const invalid = await runHearth(["hooks", "--config", file("i.json5", "{ hooks: { enabeld: true } }"), "audit"], {
    home,
  });
  expect([invalid.code, invalid.stdout]).toEqual([1, expect.stringContaining("hooks.enabeld: unknown key")]);
  expect(invalid.stderr).toBe(""); // the table reports everything
  const root = await runHearth(["hooks", "audit", "--config", file("r.json5", "{ hoks: {} }")], { home });
  expect([root.code, root.stdout, root.stderr]).toEqual([1, expect.stringContaining("did you mean 'hooks'?"), ""]);
});

test("nodes says that no other server shares the database", async () => {
  const nodes = (...args: string[]) =>
    runHearth(["nodes", ...args], { home, env: { HEARTH_HOST: new URL(hearth.url).host } });
  expect(await nodes()).toMatchObject({ code: 0, stderr: "no other server shares the gateway's database\n" });
  expect(JSON.parse((await nodes("--json")).stdout)).toEqual({ nodes: [] });
});

test("turns wait between pause and resume", async () => {
  expect(await hooks("pause", "--json")).toMatchObject({ code: 0, stdout: '{\n  "paused": true\n}\n' });
  const body = JSON.stringify({ message: "hello", deliver: false, wakeMode: "next-heartbeat" });
  const headers = { authorization: `Bearer ${TOKEN}` };
  const { runId } = (await (await fetch(`${hearth.url}/hooks/agent`, { method: "POST", headers, body })).json()) as any;
  const state = async (): Promise<string> =>
    ((await (await fetch(`${hearth.url}/hooks/runs/${runId}`, { headers })).json()) as any).run.state;
  await Bun.sleep(300);
  expect(await state()).toBe("queued");
  const resumed = await hooks("resume");
  expect(resumed).toMatchObject({ code: 0, stdout: expect.stringContaining("resumed") });
  expect(await eventually(async () => (await state()) !== "queued", 60_000)).toBe(true);
});

test("replay --replies sends all failed replies again, and counts before it does", async () => {
  const body = JSON.stringify({ message: "hello", channel: "telegram", wakeMode: "next-heartbeat" });
  const headers = { authorization: `Bearer ${TOKEN}`, prefer: "wait=60" };
  for (let i = 0; i < 2; i++) await fetch(`${hearth.url}/hooks/agent`, { method: "POST", headers, body });
  const counted = async (): Promise<string> => (await hooks("replay", "--replies", "--dry-run")).stdout;
  expect(await eventually(async () => (await counted()) === "2 replies that failed\n", 60_000)).toBe(true);
  chat.isBroken = false;
  expect((await hooks("replay", "--replies", "--since", "2100-01-01")).stdout).toBe("0 replies that failed\n");
  const replayed = await hooks("replay", "--replies", "--path", "agent", "--since", "1h");
  expect(replayed).toMatchObject({
    code: 0,
    stdout: "replayed 2 replies\n",
    stderr: "replaying 2 replies that failed\n",
  });
  expect(await eventually(() => chat.sent === 2, 60_000)).toBe(true);
  expect((await hooks("replay", "--dead", "--json")).stdout).toBe(
    `${JSON.stringify({ found: 0, replayed: 0, skipped: [] }, null, 2)}\n`,
  );
  for (const [args, problem] of [
    [[], "expected either an id, --dead or --replies"],
    [["--dead", "--replies"], "expected either an id, --dead or --replies"],
    [["x", "--since", "1h"], "a filter or --dry-run needs --dead or --replies"],
    [
      ["--dead", "--since", "yesterday"],
      "--since: expected a duration such as 2h, or a date such as 2026-01-31T08:00Z, got 'yesterday'",
    ],
  ] as const) {
    expect(await hooks("replay", ...args)).toMatchObject({ code: 1, stdout: "", stderr: `Error: ${problem}\n` });
  }
});
