/** What a monitoring system and an orchestrator see of the gateway; through a real socket. */
import { expect, test } from "bun:test";
import { json, startGateway, type GatewayWorld } from "../gateway/world.ts";

const WAIT = { headers: { prefer: "wait=60" } };

async function value(world: GatewayWorld, series: string): Promise<number | undefined> {
  const text = await (await fetch(`${world.url}/metrics`)).text();
  const line = text.split("\n").find((each) => each.startsWith(`${series} `));
  return line === undefined ? undefined : Number(line.slice(series.length + 1));
}

test("GET /metrics: requests by outcome, runs by state, and what waits", async () => {
  const open = Promise.withResolvers<void>();
  const agents = { defaults: { model: "m", maxConcurrent: 1, heartbeat: { every: 0, target: "none" } } };
  const script = (_: unknown, i: number) => ({ text: "x", ...(i === 1 ? { until: open.promise } : {}) });
  const world = await startGateway({ settings: { agents }, script });
  await world.hook("agent", { message: "hi" }, { headers: { ...WAIT.headers, "idempotency-key": "k" } });
  await world.hook("agent", { message: "hi" }, { headers: { "idempotency-key": "k" } });
  await world.hook("agent", { message: "" });
  await world.hook("wake", { text: "w", mode: "next-heartbeat" }, { headers: { authorization: "Bearer wrong" } });
  expect(await value(world, 'hearth_hook_requests_total{outcome="accepted"}')).toBe(1);
  expect(await value(world, 'hearth_hook_requests_total{outcome="replayed"}')).toBe(1);
  expect(await value(world, 'hearth_hook_requests_total{outcome="message_required"}')).toBe(1);
  expect(await value(world, 'hearth_hook_requests_total{outcome="unauthorized"}')).toBe(1);
  expect(await value(world, 'hearth_hook_runs_total{kind="agent",state="succeeded"}')).toBe(1);
  expect(await value(world, 'hearth_hook_run_seconds_count{state="succeeded"}')).toBe(1);
  expect(await value(world, "hearth_hook_runs_queued")).toBe(0);
  const { runId } = await json(await world.hook("agent", { message: "runs" }));
  const events = await world.hook(`runs/${runId}/events`);
  for await (const bytes of events.body!) if (new TextDecoder().decode(bytes).includes("running")) break;
  await world.hook("agent", { message: "waits" });
  expect(await value(world, "hearth_hook_runs_running")).toBe(1);
  expect(await value(world, "hearth_hook_runs_queued")).toBe(1);
  expect(await value(world, "hearth_hook_queue_oldest_seconds")).toBeGreaterThanOrEqual(0);
  open.resolve();
});

test("GET /metrics: runs that were cancelled before they ran are counted too", async () => {
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

test("GET /health: the gateway's queue; 503 once its database cannot be written", async () => {
  const world = await startGateway();
  const healthy = await fetch(`${world.url}/health`);
  expect(healthy.status).toBe(200);
  const idle = { queued: 0, running: 0, oldestMs: 0, replies: 0, callbacks: 0, messages: 0 };
  expect(await json(healthy)).toMatchObject({ status: "ok", gateway: idle });
  world.gateway.db.run("PRAGMA query_only = ON");
  const failing = await fetch(`${world.url}/health`);
  expect(failing.status).toBe(503);
  expect((await json(failing)).problems).toEqual(["the gateway's database cannot be written"]);
  world.gateway.db.run("PRAGMA query_only = OFF");
});

test("while the gateway stops: 503 with Retry-After for webhooks and models alike, probes still answer", async () => {
  const open = Promise.withResolvers<void>();
  const world = await startGateway({ script: () => ({ text: "x", until: open.promise }) });
  const { runId } = await json(await world.hook("agent", { message: "hi" }));
  const events = await world.hook(`runs/${runId}/events`);
  for await (const bytes of events.body!) if (new TextDecoder().decode(bytes).includes("running")) break;
  const stopped = world.gateway.stop(60_000);
  for (const path of ["hooks/wake", "api/tags", "hooks-admin/deliveries"]) {
    const response = await fetch(`${world.url}/${path}`);
    expect([path, response.status]).toEqual([path, 503]);
    expect(Number(response.headers.get("retry-after"))).toBeWithin(61, 66); // the minute that turns have, and a start
  }
  const health = await fetch(`${world.url}/health`);
  expect([health.status, (await json(health)).problems]).toEqual([503, ["the server is shutting down"]]);
  expect((await fetch(`${world.url}/metrics`)).status).toBe(200);
  open.resolve(); // what runs may finish
  await stopped;
});
