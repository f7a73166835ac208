/** Several servers: a gateway whose turns run on remote model servers, behind a router that keeps prefixes warm. */
import { afterEach, expect, test } from "bun:test";
import { mkdirSync, mkdtempSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { startCollector, type Collector } from "../otlp-collector.ts";
import { DOCKER_REGISTRY, startDockerRegistry } from "../library/registry/docker-registry.ts";
import { eventually, ndjson, startHearth, type Hearth } from "./hearth.ts";

const TOKEN = "a-hook-token-of-32-characters-xx";
const WAIT_MS = 120_000;

const cleanups: (() => unknown)[] = [];
afterEach(async () => {
  for (const cleanup of cleanups.splice(0).toReversed()) await cleanup();
});

async function start(options: Parameters<typeof startHearth>[0]): Promise<Hearth> {
  const hearth = await startHearth({ isSteady: true, ...options });
  cleanups.push(() => hearth.stop());
  return hearth;
}

/** Sends requests of a session to one server, and new sessions to the servers in turn. */
function sessionRouter(servers: readonly string[]): { url: string; sessions: Map<string, string> } {
  const sessions = new Map<string, string>();
  const router = Bun.serve({
    port: 0,
    hostname: "127.0.0.1",
    idleTimeout: 0,
    fetch(request) {
      const session = request.headers.get("x-session-id");
      const chosen = (session && sessions.get(session)) ?? servers[sessions.size % servers.length]!;
      if (session) sessions.set(session, chosen);
      const { pathname } = new URL(request.url);
      return fetch(chosen + pathname, { method: request.method, headers: request.headers, body: request.body });
    },
  });
  cleanups.push(() => router.stop(true));
  return { url: `http://127.0.0.1:${router.port}`, sessions };
}

/** Prompt tokens requested from a server, and the cached ones among them. */
async function cacheFigures({ url }: Hearth): Promise<{ queries: number; hits: number }> {
  const text = await (await fetch(`${url}/metrics/vllm`)).text();
  const read = (name: string): number =>
    Number(new RegExp(`^vllm:prefix_cache_${name}_total\\{.*\\} (\\d+)$`, "m").exec(text)?.[1] ?? 0);
  return { queries: read("queries"), hits: read("hits") };
}

/** Spans of these names, each the child of the next. */
function chainsOf({ spans }: Collector, names: readonly string[]): any[][] {
  return spans
    .filter(({ name }) => name === names[0])
    .map((first) => {
      const chain = [first];
      for (const name of names.slice(1)) {
        const parent = spans.find(({ spanId }) => spanId === chain.at(-1)?.parentSpanId);
        if (parent?.name === name) chain.push(parent);
      }
      return chain;
    })
    .filter(({ length }) => length === names.length);
}

test("turns run on other servers, and the session's header routes each session to its cached prefix", async () => {
  const collector = startCollector();
  cleanups.push(collector.stop);
  const env = { OTEL_EXPORTER_OTLP_ENDPOINT: collector.url, OTEL_BSP_SCHEDULE_DELAY: "20" };
  const servers = await Promise.all([start({ env }), start({ env })]);
  const router = sessionRouter(servers.map(({ url }) => url));
  const home = mkdtempSync(join(tmpdir(), "hearth-fleet-"));
  cleanups.push(() => rmSync(home, { recursive: true, force: true }));
  mkdirSync(join(home, ".hearth"));
  const settings = {
    models: { url: router.url },
    hooks: { enabled: true, token: TOKEN },
    agents: { defaults: { heartbeat: { every: 0, target: "none" } } },
  };
  writeFileSync(join(home, ".hearth", "hearth.json5"), JSON.stringify(settings), { mode: 0o600 });
  const gateway = await start({ home, env });
  const traceparent = "00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01";
  const headers = { authorization: `Bearer ${TOKEN}`, "content-type": "application/json", traceparent };
  const turn = async (session: string, message: string): Promise<void> => {
    const body = JSON.stringify({ message, sessionKey: `hook:${session}`, deliver: false, wakeMode: "next-heartbeat" });
    const accepted = await fetch(`${gateway.url}/hooks/agent`, { method: "POST", headers, body });
    const { runId } = (await accepted.json()) as { runId: string };
    const isDone = async (): Promise<boolean> => {
      const { run } = (await (await fetch(`${gateway.url}/hooks/runs/${runId}`, { headers })).json()) as any;
      return run.state === "succeeded";
    };
    expect(await eventually(isDone, WAIT_MS)).toBe(true);
  };
  await turn("fox", "Tell me about a fox.");
  await turn("owl", "Tell me about an owl.");
  const first = await Promise.all(servers.map(cacheFigures));
  await turn("fox", "And then?");
  const second = await Promise.all(servers.map(cacheFigures));
  expect(router.sessions.size).toBe(2);
  expect(new Set(router.sessions.values()).size).toBe(2);
  expect(first.map(({ queries }) => queries > 0)).toEqual([true, true]);
  expect(second[1]).toEqual(first[1]!); // the other session's server got no request
  const fresh = second[0]!.queries - first[0]!.queries - (second[0]!.hits - first[0]!.hits);
  expect(second[0]!.hits).toBeGreaterThan(first[0]!.hits + first[0]!.queries / 2); // the conversation so far
  expect(fresh).toBeLessThan(second[0]!.queries - first[0]!.queries);
  expect(await gateway.runnerPids()).toEqual([]); // no model is in memory here
  const chain = ["POST /api/chat", "chat hearth:latest", "agent turn", "POST hooks/agent"];
  expect(await eventually(() => chainsOf(collector, chain).length === 3)).toBe(true);
  for (const spans of chainsOf(collector, chain)) {
    expect(new Set(spans.map(({ traceId }) => traceId))).toEqual(new Set(["0af7651916cd43dd8448eb211c80319c"]));
    expect(spans.at(-1).parentSpanId).toBe("b7ad6b7169203331");
  }
}, 300_000);

test("a server sends its metrics to a collector, at the latest when it stops", async () => {
  const collector = startCollector();
  cleanups.push(collector.stop);
  const hearth = await start({
    env: {
      OTEL_EXPORTER_OTLP_METRICS_ENDPOINT: `${collector.url}/v1/metrics`,
      OTEL_METRIC_EXPORT_INTERVAL: "1000000",
      OTEL_RESOURCE_ATTRIBUTES: "deployment.environment.name=test",
    },
  });
  await fetch(`${hearth.url}/api/version`);
  expect(collector.requests).toEqual([]);
  hearth.process.kill("SIGTERM");
  await hearth.process.exited;
  expect(collector.requests).toHaveLength(1);
  const { attributes } = collector.requests[0]!.body.resourceMetrics[0].resource;
  const keys = ["service.version", "service.instance.id", "host.name", "deployment.environment.name", "service.name"];
  expect(attributes.map(({ key }: { key: string }) => key)).toEqual(keys);
  const counted = collector.metrics.find(({ name }) => name === "hearth_http_requests_total");
  const values = counted.sum.dataPoints.map((point: any) => [point.attributes[0].value.stringValue, point.asDouble]);
  expect(values).toContainEqual(["/api/version", 1]);
}, 120_000);

test.skipIf(!DOCKER_REGISTRY)(
  "a model that one server created and pushed to docker-registry runs on another server",
  async () => {
    const folder = mkdtempSync(join(tmpdir(), "hearth-fleet-"));
    cleanups.push(() => rmSync(folder, { recursive: true, force: true }));
    const registry = await startDockerRegistry(folder);
    cleanups.push(registry.stop);
    const env = { HEARTH_MODELS_SOURCE: `http://${registry.host}`, HEARTH_MODELS_CACHE: "1GiB" };
    const [maker, user] = await Promise.all([start({ env }), start({ env })]);
    for (const [path, body] of [
      ["/api/create", { model: "fleet-poet", from: "hearth", system: "You rhyme." }],
      ["/api/push", { model: "fleet-poet" }],
    ] as const) {
      const steps = await Array.fromAsync(ndjson(await maker.post(path, body)));
      expect([path, steps.at(-1)]).toEqual([path, { status: "success" }]);
    }
    const ask = (model: string): Promise<Response> =>
      user.post("/api/generate", { model, prompt: "Hello", stream: false, options: { num_predict: 4 } });
    const answer = await ask("fleet-poet");
    expect([answer.status, ((await answer.json()) as { eval_count: number }).eval_count > 0]).toEqual([200, true]);
    const missing = await ask("fleet-nobody");
    expect([missing.status, await missing.json()]).toEqual([404, { error: "model 'fleet-nobody' not found" }]);
  },
  300_000,
);
