/** The gateway's endpoints for monitoring systems and orchestrators, through a real socket. */
import { Database } from "bun:sqlite";
import { join } from "node:path";
import { expect, test } from "bun:test";
import { eventually } from "../e2e/hearth.ts";
import type { Script } from "../gateway/agent/scripted-runtime.ts";
import { json, startGateway, type GatewayWorld } from "../gateway/operate/world.ts";
import { queryOne } from "../../src/gateway/database/store.ts";
import { afterTest } from "../cleanups.ts";
import { hasPostgres, startPostgres } from "../postgres-server.ts";
import { postgresUrl } from "../stores.ts";

const WAIT = { headers: { prefer: "wait=60" } };

async function value(world: GatewayWorld, series: string): Promise<number | undefined> {
  const text = await (await fetch(`${world.url}/metrics`)).text();
  const line = text.split("\n").find((each) => each.startsWith(`${series} `));
  return line === undefined ? undefined : Number(line.slice(series.length + 1));
}

test("GET /metrics: counts requests by outcome and runs by state, and shows the queue", async () => {
  const open = Promise.withResolvers<void>();
  const agents = { defaults: { model: "m", maxConcurrent: 1, heartbeat: { every: 0, target: "none" } } };
  const script: Script = ({ messages }) => {
    const holds = JSON.stringify(messages.at(-1)).includes("until it is let go"); // a heartbeat may precede it
    return { text: "x", ...(holds ? { until: open.promise } : {}) };
  };
  const world = await startGateway({ settings: { agents }, script });
  await world.hook("agent", { message: "hi" }, { headers: { ...WAIT.headers, "idempotency-key": "k" } });
  await world.hook("agent", { message: "hi" }, { headers: { "idempotency-key": "k" } });
  await world.hook("agent", { message: "" });
  await world.hook("wake", { text: "w", mode: "next-heartbeat" }, { headers: { authorization: "Bearer wrong" } });
  expect(await value(world, 'hearth_hook_requests_total{route="hooks/agent",outcome="accepted"}')).toBe(1);
  expect(await value(world, 'hearth_hook_requests_total{route="hooks/agent",outcome="replayed"}')).toBe(1);
  expect(await value(world, 'hearth_hook_requests_total{route="hooks/agent",outcome="message_required"}')).toBe(1);
  expect(await value(world, 'hearth_hook_requests_total{route="hooks/wake",outcome="unauthorized"}')).toBe(1);
  expect(await value(world, 'hearth_hook_runs_total{kind="agent",state="succeeded"}')).toBe(1);
  expect(await value(world, 'hearth_hook_run_seconds_count{state="succeeded"}')).toBe(1);
  expect(await value(world, "hearth_hook_runs_queued")).toBe(0);
  const { runId } = await json(await world.hook("agent", { message: "runs until it is let go" }));
  const events = await world.hook(`runs/${runId}/events`);
  for await (const bytes of events.body!) if (new TextDecoder().decode(bytes).includes("running")) break;
  await world.hook("agent", { message: "waits" });
  expect(await value(world, "hearth_hook_runs_running")).toBe(1);
  expect(await value(world, "hearth_hook_runs_queued")).toBe(1);
  expect(await value(world, "hearth_hook_queue_oldest_seconds")).toBeGreaterThanOrEqual(0);
  open.resolve();
});

test("GET /metrics: counts runs that were cancelled before they started", async () => {
  const agents = { defaults: { model: "m", maxConcurrent: 1, heartbeat: { every: 0, target: "none" } } };
  const world = await startGateway({
    settings: { agents },
    script: () => ({ text: "x", until: new Promise(() => {}) }),
  });
  await world.hook("agent", { message: "runs" });
  const { runId } = await json(await world.hook("agent", { message: "waits" }));
  await world.admin(`deliveries/${runId}/cancel`, { method: "POST" });
  expect(await value(world, 'hearth_hook_runs_total{kind="agent",state="cancelled"}')).toBe(1);
});

test("GET /metrics: labels a mapping's route by its id, and unknown paths as other", async () => {
  const mappings = [{ id: "build server", match: { path: "ci/builds" }, action: "wake", textTemplate: "x" }];
  const world = await startGateway({ settings: { hooks: { mappings } } });
  const { runId } = await json(await world.hook("agent", { message: "hi" }, WAIT));
  await world.hook("wake", { text: "w", mode: "next-heartbeat" });
  await world.hook("ci/builds", {});
  await world.hook(`runs/${runId}`);
  for (let i = 0; i < 50; i++) await world.hook(`nowhere/${i}`, {});
  const unauthorized = 'hearth_hook_requests_total{route="hooks/:build server",outcome="unauthorized"}';
  for (const path of ["ci/builds", "nowhere"]) {
    await fetch(`${world.url}/hooks/${path}`, { method: "POST", headers: { authorization: "Bearer x" }, body: "{}" });
  }
  expect(await value(world, unauthorized)).toBe(1); // allows alerts on a sender with a wrong secret
  const text = await (await fetch(`${world.url}/metrics`)).text();
  const routes = new Set([...text.matchAll(/route="(hooks[^"]*)"/g)].map(([, route]) => route));
  expect([...routes].sort()).toEqual(["hooks/:build server", "hooks/agent", "hooks/other", "hooks/runs", "hooks/wake"]);
  expect(await value(world, 'hearth_hook_requests_total{route="hooks/other",outcome="not_found"}')).toBe(50);
  const missing = { defaults: { model: "gone", heartbeat: { every: 0, target: "none" } } };
  const lacking = await startGateway({ settings: { agents: missing } });
  expect(await value(lacking, "hearth_gateway_findings")).toBe(1); // its model is missing
  expect(await value(world, 'hearth_http_requests_total{route="hooks/:build server",method="POST",status="200"}')).toBe(
    1,
  );
});

test("GET /metrics: counts replies and messages by channel, and callbacks by outcome", async () => {
  const platform = Bun.serve({
    port: 0,
    hostname: "127.0.0.1",
    fetch: ({ url }) =>
      url.endsWith("/done") ? new Response() : Response.json({ ok: true, result: { message_id: 1 } }),
  });
  try {
    const url = `http://127.0.0.1:${platform.port}`;
    const channels = { telegram: { botToken: "123:abc", baseUrl: url, defaultTo: "42" } };
    const callbacks = { allowFromRequest: true, allowPrivateAddresses: true };
    const world = await startGateway({ settings: { channels, hooks: { callbacks } } });
    const message = { message: "hi", channel: "telegram", callbackUrl: `${url}/done` };
    const { runId } = await json(await world.hook("agent", message, WAIT));
    await world.hook("agent", { message: "hi", channel: "slack" }, WAIT);
    const events = await world.hook(`runs/${runId}/events`);
    await events.text(); // waits for the end of the reply
    await eventually(async () => (await value(world, 'hearth_hook_callbacks_total{outcome="sent"}')) === 1, 60_000);
    expect(await value(world, 'hearth_hook_replies_total{channel="telegram",outcome="sent"}')).toBe(1);
    expect(await value(world, 'hearth_hook_replies_total{channel="slack",outcome="failed"}')).toBe(1);
    expect(await value(world, 'hearth_channel_sends_total{channel="telegram",outcome="sent"}')).toBe(1);
    expect(await value(world, 'hearth_hook_callbacks_total{outcome="sent"}')).toBe(1);
  } finally {
    await platform.stop(true);
  }
});

const isSqlite = postgresUrl === undefined; // its file can be locked

test.skipIf(!isSqlite)(
  "GET /health: shows the gateway's queue, and is 503 while its database cannot be written",
  async () => {
    const world = await startGateway();
    const healthy = await fetch(`${world.url}/health`);
    expect(healthy.status).toBe(200);
    const idle = { queued: 0, running: 0, oldestMs: 0, replies: 0, callbacks: 0, messages: 0 };
    expect(await json(healthy)).toMatchObject({ status: "ok", gateway: idle });
    const other = new Database(join(world.home, "gateway.db"));
    await world.gateway.store.read(() => queryOne("PRAGMA busy_timeout = 1"));
    other.run("BEGIN IMMEDIATE"); // blocks other commits
    expect((await world.hook("wake", { text: "disk full" })).status).toBe(503);
    const failing = await fetch(`${world.url}/health`);
    expect(failing.status).toBe(503);
    expect((await json(failing)).problems).toEqual(["the gateway's database cannot be written"]);
    other.run("ROLLBACK");
    other.close();
    expect((await fetch(`${world.url}/health`)).status).toBe(200);
  },
);

test("while the gateway stops, webhooks and models get 503 with Retry-After, and /health and /metrics answer", async () => {
  const open = Promise.withResolvers<void>();
  const world = await startGateway({ script: () => ({ text: "x", until: open.promise }) });
  const { runId } = await json(await world.hook("agent", { message: "hi" }));
  const events = await world.hook(`runs/${runId}/events`);
  for await (const bytes of events.body!) if (new TextDecoder().decode(bytes).includes("running")) break;
  const startedMs = Date.now();
  const stopped = world.gateway.stop(60_000);
  for (const path of ["hooks/wake", "api/tags", "hooks-admin/deliveries"]) {
    const response = await fetch(`${world.url}/${path}`);
    expect([path, response.status]).toEqual([path, 503]);
    // the rest of the minute of grace for turns, and a start
    expect(Number(response.headers.get("retry-after"))).toBeWithin(61 - (Date.now() - startedMs) / 1000, 66);
  }
  const health = await fetch(`${world.url}/health`);
  expect([health.status, (await json(health)).problems]).toEqual([503, ["the server is shutting down"]]);
  expect((await fetch(`${world.url}/metrics`)).status).toBe(200);
  open.resolve(); // lets running turns finish
  await stopped;
});

test.skipIf(!hasPostgres)(
  "GET /health: fails while PostgreSQL is away, and omits the figures that PostgreSQL holds",
  async () => {
    const server = await startPostgres({ syncs: false });
    afterTest(() => server.remove());
    const world = await startGateway({ settings: { database: { url: server.url, schema: "health", connections: 4 } } });
    const health = async (): Promise<Record<string, unknown>> => await json(await fetch(`${world.url}/health`));
    expect(await health()).toMatchObject({ status: "ok", gateway: { queued: 0 } });
    await server.stop("immediate");
    const away = await health();
    expect(away).toMatchObject({ status: "failing", problems: ["the gateway's database cannot be written"] });
    expect(away).not.toHaveProperty("gateway");
    await server.start();
    const isBack = async (): Promise<boolean> => (await health())["gateway"] !== undefined;
    expect(await eventually(isBack, 60_000)).toBe(true);
  },
  120_000,
);
