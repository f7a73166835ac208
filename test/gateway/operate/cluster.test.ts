/** Gateways that share one PostgreSQL database, as several machines would: each with its own connections and model. */
import { afterAll, beforeAll, describe, expect, test } from "bun:test";
import { existsSync, mkdtempSync, readFileSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { execute, queryAll } from "../../../src/gateway/database/store.ts";
import { configurations } from "../../../src/gateway/operate/nodes.ts";
import { eventually } from "../../e2e/hearth.ts";
import { hasPostgres, startPostgres, type PostgresServer } from "../../postgres-server.ts";
import { afterTest } from "../../cleanups.ts";
import { startGateway as startNode, type GatewayWorld } from "./world.ts";
import { startChat, startGateway, TOKEN, type GatewayBench } from "./fixtures.ts";

const WAIT_MS = 60_000;
const SESSIONS = ["one", "two", "three", "four"];

describe.skipIf(!hasPostgres)("a cluster (Debian's postgresql)", () => {
  let server: PostgresServer;
  let schemas = 0;
  beforeAll(async () => void (server = await startPostgres()), 120_000);
  afterAll(() => server?.remove(), 60_000);

  const settings = (schema = `cluster_${++schemas}`, chatUrl = "http://127.0.0.1:1") => ({
    database: { url: server.url, schema, connections: 4 },
    hooks: { enabled: true, token: TOKEN },
    channels: { telegram: { botToken: "123:abc", baseUrl: chatUrl, defaultTo: "42" } },
    agents: { defaults: { maxConcurrent: 1, heartbeat: { every: 0, target: "none" } } },
  });
  const ask = async (bench: GatewayBench, message: string, sessionKey: string): Promise<string> => {
    const response = await bench.post("agent", {
      message,
      sessionKey: `hook:${sessionKey}`,
      wakeMode: "next-heartbeat",
    });
    expect(response.status).toBe(202);
    return ((await response.json()) as { runId: string }).runId;
  };
  const stateOf = async (bench: GatewayBench, runId: string) => (await bench.gateway.deliveries.run(runId))?.state;
  const leaders = async (bench: GatewayBench): Promise<Record<string, number>> => {
    const nodes = await bench.gateway.admin.nodes();
    return Object.fromEntries(nodes.flatMap(({ number, leads }) => leads.map((name) => [name, number])));
  };

  test("runs turns of different sessions on all nodes, and each turn once", async () => {
    const gate = Promise.withResolvers<void>();
    const config = settings();
    const script = () => ({ text: "done", until: gate.promise });
    const first = await startGateway(config, { script });
    const second = await startGateway(config, { script });
    const runIds: string[] = [];
    for (const key of SESSIONS) runIds.push(await ask(first, "go", key), await ask(first, "again", key));
    const begun = (): number[] => [first.prompts().length, second.prompts().length];
    expect(await eventually(() => begun().join() === "1,1", WAIT_MS)).toBe(true);
    expect(first.runtime.requests[0]?.messages.at(-1)).not.toBe(second.runtime.requests[0]?.messages.at(-1));
    gate.resolve();
    const areDone = async (): Promise<boolean> =>
      (await Promise.all(runIds.map((id) => stateOf(second, id)))).every((state) => state === "succeeded");
    expect(await eventually(areDone, WAIT_MS)).toBe(true);
    expect(begun().reduce((sum, n) => sum + n)).toBe(2 * SESSIONS.length);
  }, 120_000);

  test("cancels a reply from a node that does not lead its channel", async () => {
    const chat = startChat();
    chat.answer = () => new Response("away", { status: 503 });
    const config = settings(undefined, chat.url);
    const first = await startGateway(config);
    const second = await startGateway(config);
    const runId = await ask(first, "go", "one");
    const attempts = () =>
      second.gateway.store.read(() => queryAll("SELECT 1 FROM outbox WHERE state = 'queued' AND attempts > 0"));
    expect(await eventually(async () => (await attempts()).length > 0, WAIT_MS)).toBe(true);
    const other = (await leaders(first))["channel:telegram"] === 1 ? second : first;
    const [answer] = await other.gateway.admin.cancel(runId);
    expect(["recalled", "stopping"]).toContain(answer!.result); // it may have been retried just then
    const replyOf = async () => (await first.gateway.deliveries.run(runId))?.reply;
    expect(await eventually(async () => (await replyOf()) === "failed", WAIT_MS)).toBe(true);
  }, 120_000);

  test("makes a tool call once on another node if the requesting node is gone before the approval", async () => {
    const home = mkdtempSync(join(tmpdir(), "hearth-calls-"));
    afterTest(() => rmSync(home, { recursive: true, force: true }));
    const effects = join(home, "effects");
    const fx = { command: process.execPath, args: [join(import.meta.dir, "../agent/effect-server.ts"), effects] };
    const wakeMode = "next-heartbeat"; // a heartbeat would ask the model too
    const mapping = { match: { path: "m" }, messageTemplate: "Go.", tools: ["fx/*"], deliver: false, wakeMode };
    const { database } = settings();
    const call = { id: "c", function: { name: "fx__once", arguments: { n: "1" } } };
    const node = (): Promise<GatewayWorld> =>
      startNode({
        servers: { fx },
        settings: { database, hooks: { mappings: [mapping] } },
        script: ({ messages }) =>
          messages.some(({ role }) => role === "tool") ? { text: "Done." } : { calls: [call] },
      });
    const first = await node();
    const { runId } = (await (await first.hook("m", {})).json()) as { runId: string };
    const run = async ({ gateway }: GatewayWorld) => gateway.deliveries.run(runId);
    expect(await eventually(async () => (await first.gateway.admin.approvals()).length === 1, WAIT_MS)).toBe(true);
    expect(await eventually(async () => (await run(first))?.state === "queued", WAIT_MS)).toBe(true);
    const second = await node();
    await first.gateway.stop(0);
    const [approval] = await second.gateway.admin.approvals();
    expect(approval).toMatchObject({ tool: "fx/once", runId });
    expect(existsSync(effects)).toBe(false);
    await second.gateway.admin.decide(approval!.code, { verdict: "yes", digest: approval!.digest });
    expect(await eventually(async () => (await run(second))?.state === "succeeded", WAIT_MS)).toBe(true);
    expect(readFileSync(effects, "utf8")).toBe("once 1 \n");
    expect([first.runtime.requests.length, second.runtime.requests.length]).toEqual([1, 1]);
  }, 120_000);

  test("lets a node watch and cancel a run of another node", async () => {
    const config = settings();
    const never = { text: "half of it", until: new Promise(() => {}) };
    const first = await startGateway(config, { script: () => never });
    const runId = await ask(first, "go", "watched");
    expect(await eventually(async () => (await stateOf(first, runId)) === "running", WAIT_MS)).toBe(true);
    const second = await startGateway(config);
    const states: string[] = [];
    const watched = (async () => {
      for await (const news of second.gateway.worker.watch(runId)) {
        if (news.kind === "status") states.push(news.status.state);
      }
    })();
    expect(await eventually(() => states.length > 0, WAIT_MS)).toBe(true);
    expect(await second.gateway.worker.cancel(runId)).toBe("stopping");
    await watched;
    expect([states[0], states.at(-1)]).toEqual(["running", "cancelled"]);
  }, 120_000);

  test("applies a rate limit to all nodes together", async () => {
    const config = settings();
    const limited = { ...config, hooks: { ...config.hooks, rateLimit: { perMinute: 20 } } };
    const first = await startGateway(limited);
    const second = await startGateway(limited);
    const statusOf = async (bench: GatewayBench): Promise<number> =>
      (await bench.post("wake", { text: "x", mode: "next-heartbeat" })).status;
    const begunMs = performance.now();
    for (let i = 0; i < 20; i++) expect(await statusOf(first)).toBe(200);
    let passed = 0;
    const isRefused = async (): Promise<boolean> => {
      const status = await statusOf(second);
      if (status === 200) passed++;
      await Bun.sleep(200); // like a slow sender
      return status === 429;
    };
    expect(await eventually(isRefused, WAIT_MS)).toBe(true);
    const againAllowed = (20 * (performance.now() - begunMs)) / 60_000; // many, on a busy machine
    expect(passed).toBeLessThan(10 + againAllowed); // 20 more, if each node counted for itself
  }, 120_000);

  test("has one leader for all duties, which hands them on when it stops", async () => {
    const chat = startChat();
    const config = {
      ...settings(undefined, chat.url),
      agents: { defaults: { heartbeat: { every: 0, target: "none" } } },
    };
    const led = ["callbacks", "channel:telegram", "heartbeat", "housekeeping", "mail"];
    const leadsAll = async (bench: GatewayBench): Promise<boolean> =>
      Bun.deepEquals(Object.keys(await leaders(bench)).toSorted(), led);
    const first = await startGateway(config, { script: () => ({ text: "by the first" }) });
    expect(await eventually(() => leadsAll(first), WAIT_MS)).toBe(true);
    const second = await startGateway(config, { script: () => ({ text: "by the second" }) });
    expect(await eventually(() => leadsAll(second), WAIT_MS)).toBe(true);
    const before = new Set(Object.values(await leaders(second)));
    expect(before.size).toBe(1);
    await ask(second, "hello", "told");
    expect(await eventually(() => chat.sent.length === 1, WAIT_MS)).toBe(true);
    await first.stop();
    const hasMoved = async (): Promise<boolean> =>
      (await leadsAll(second)) && Object.values(await leaders(second)).every((node) => !before.has(node));
    expect(await eventually(hasMoved, WAIT_MS)).toBe(true);
    await ask(second, "hello", "told");
    expect(await eventually(() => chat.sent.length === 2, WAIT_MS)).toBe(true);
  }, 120_000);

  test("pauses and resumes all nodes, including new ones", async () => {
    const config = settings();
    const first = await startGateway(config);
    const second = await startGateway(config);
    await first.gateway.worker.setPaused(true);
    expect(await eventually(() => second.gateway.worker.isPaused, WAIT_MS)).toBe(true);
    const runId = await ask(second, "go", "paused");
    expect((await second.post("wake", { text: "deploy failed" })).status).toBe(200);
    const third = await startGateway(config);
    expect(third.gateway.worker.isPaused).toBe(true);
    expect(await stateOf(third, runId)).toBe("queued");
    const prompts = (): string[] => [first, second, third].flatMap((bench) => bench.prompts());
    await Bun.sleep(500); // a heartbeat begins within half of that
    expect(prompts()).toEqual([]);
    await second.gateway.worker.setPaused(false);
    expect(await eventually(async () => (await stateOf(first, runId)) === "succeeded", WAIT_MS)).toBe(true);
    const isAnswered = (): boolean => prompts().some((prompt) => prompt.includes("deploy failed"));
    expect(await eventually(isAnswered, WAIT_MS)).toBe(true);
  }, 120_000);

  test("counts different configurations at once, and reports them as a finding after a minute", async () => {
    const config = settings();
    const first = await startGateway(config);
    await startGateway({ ...config, session: { maxEvents: 7 } });
    const digests = async (): Promise<number> => configurations(await first.gateway.nodes()).size;
    expect(await eventually(async () => (await digests()) === 2, WAIT_MS)).toBe(true);
    expect(await first.gateway.admin.findings()).toEqual([]);
    await first.gateway.store.write(() => execute("UPDATE nodes SET digest_at = digest_at - 60000"));
    expect(await first.gateway.admin.findings()).toMatchObject([{ id: "configurations-differ" }]);
  }, 120_000);
});
