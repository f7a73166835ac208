/**
 * The rows of "Gateway Webhook Ingress" about work after the answer, each through a real socket and the whole gateway;
 * `test/api/hooks*.test.ts` has the rows about the answers.
 */
import { describe, expect, test } from "bun:test";
import { systemClock, type Clock } from "../../../src/base/clock.ts";
import { eventually } from "../../e2e/hearth.ts";
import { quiet, startChat, startGateway, TOKEN, type GatewayBench, type GatewayBenchOptions } from "./fixtures.ts";

const WAIT_MS = 60_000;
const hooks = { enabled: true, token: TOKEN };

const holds = async (check: () => boolean | Promise<boolean>): Promise<void> =>
  expect(await eventually(check, WAIT_MS)).toBe(true);

interface Options extends GatewayBenchOptions {
  readonly hooks?: object;
  readonly agents?: object;
  readonly channels?: object;
  readonly session?: object;
}

async function start(options: Options = {}) {
  const chat = startChat();
  const bench = await startGateway(
    {
      hooks: { ...hooks, ...options.hooks },
      agents: options.agents ?? quiet,
      session: options.session ?? {},
      channels: { telegram: { botToken: "123:abc", baseUrl: chat.url, defaultTo: "42" }, ...options.channels },
    },
    options,
  );
  return { bench, chat };
}

const agent = async (bench: GatewayBench, body: object): Promise<string> => {
  const response = await bench.post("agent", { message: "hi", wakeMode: "next-heartbeat", ...body });
  expect(response.status).toBe(202);
  return ((await response.json()) as { runId: string }).runId;
};
const ended = (bench: GatewayBench, runId: string) =>
  holds(async () => ["succeeded", "failed", "dead"].includes((await bench.gateway.deliveries.run(runId))?.state ?? ""));

describe("POST {hooks.path}/wake", () => {
  test("mode now: queues an event for the main session and triggers a heartbeat", async () => {
    const { bench } = await start();
    await bench.post("wake", { text: "disk full" });
    await holds(async () => bench.prompts().length === 1 && (await bench.events()).length === 0);
    expect(bench.prompts()[0]).toContain("disk full");
  }, 120_000);

  test("mode now: triggers a heartbeat also if events of next-heartbeat leave no room for its own", async () => {
    const { bench } = await start({ session: { maxEvents: 2 } });
    for (const text of ["one", "two", "three"]) await bench.post("wake", { text, mode: "next-heartbeat" });
    expect(bench.prompts()).toEqual([]);
    await bench.post("wake", { text: "disk full" });
    await holds(() => bench.prompts().some((prompt) => prompt.includes("disk full")));
    expect(bench.prompts()[0]).toMatch(/one[^]*two/);
    await holds(async () => (await bench.events()).length === 0);
  }, 120_000);

  test("mode next-heartbeat: the event waits for the next periodic check", async () => {
    const { bench } = await start();
    await bench.post("wake", { text: "one", mode: "next-heartbeat" });
    await holds(async () => (await bench.events()).length === 1);
    await agent(bench, { deliver: false }); // a turn of another session does not take it
    await holds(async () => (await bench.events()).length === 2);
    expect([bench.prompts().length, (await bench.events())[0]]).toEqual([1, "one"]);
  }, 120_000);
});

describe("POST {hooks.path}/agent", () => {
  test("the message runs in its own session, inside the boundary, without another session's text", async () => {
    const { bench } = await start();
    await ended(bench, await agent(bench, { message: "first secret" }));
    await ended(bench, await agent(bench, { message: "second" }));
    const { messages } = bench.runtime.requests[1]!;
    expect(JSON.stringify(messages)).not.toContain("first secret");
    expect(messages.at(-1)?.content).toMatch(/EXTERNAL[\s\S]*second/i);
  }, 120_000);

  test("a summary with the name is posted to the main session, delivered, silent or failed", async () => {
    const { bench } = await start({
      script: ({ messages }) => {
        if (messages.at(-1)?.content?.includes("break")) throw new Error("no such luck");
        return { text: "all good" };
      },
      hooks: { queue: { maxAttempts: 1 } },
    });
    await ended(bench, await agent(bench, { name: "Mail" }));
    await ended(bench, await agent(bench, { name: "Silent", deliver: false }));
    await ended(bench, await agent(bench, { message: "break" }));
    await holds(async () => (await bench.events()).length === 3);
    expect((await bench.events()).slice(0, 2)).toEqual(["Hook Mail: all good", "Hook Silent: all good"]);
    expect((await bench.events())[2]).toStartWith("Hook (error): ");
  }, 120_000);

  test("wakeMode now: a heartbeat reads the summary after the run", async () => {
    const { bench } = await start();
    await agent(bench, { name: "CI", wakeMode: "now", deliver: false });
    await holds(async () => bench.prompts().length === 2 && (await bench.events()).length === 0);
    expect(bench.prompts()[1]).toContain("Hook CI: done");
  }, 120_000);

  test("wakeMode now: a summary without room still gets its heartbeat", async () => {
    const { bench } = await start({ session: { maxEvents: 1 } });
    await bench.post("wake", { text: "one", mode: "next-heartbeat" });
    await ended(bench, await agent(bench, { name: "CI", wakeMode: "now", deliver: false }));
    await holds(() => bench.prompts().some((prompt) => prompt.includes("Hook CI: done")));
  }, 120_000);

  test("sessionKey: a constant key continues its conversation, in order", async () => {
    const { bench } = await start();
    const ids = await Promise.all(
      [1, 2, 3].map((n) => agent(bench, { message: `part ${n}`, sessionKey: "hook:talk" })),
    );
    for (const id of ids) await ended(bench, id);
    const last = JSON.stringify(bench.runtime.requests.at(-1)?.messages);
    for (const n of [1, 2, 3]) expect(last).toContain(`part ${n}`);
  }, 120_000);

  test("deliver: a reply is sent to the default channel and recipient unless false", async () => {
    const { bench, chat } = await start();
    await ended(bench, await agent(bench, { deliver: false }));
    await ended(bench, await agent(bench, {}));
    await holds(() => chat.sent.length > 0);
    expect(chat.sent).toEqual(["42: done"]);
  }, 120_000);

  test("deliver: a reply that is only an acknowledgement is not sent, and a short alert beside one is", async () => {
    const replies = ["HEARTBEAT_OK", "HEARTBEAT_OK. Disk almost full on db1"];
    const { bench, chat } = await start({ script: (_, i) => ({ text: replies[i] ?? "" }) });
    const first = await agent(bench, {});
    await ended(bench, first);
    expect((await bench.gateway.deliveries.run(first))?.reply).toBe("skipped");
    await ended(bench, await agent(bench, {}));
    await holds(() => chat.sent.length > 0);
    expect(chat.sent).toEqual(["42: Disk almost full on db1"]);
  }, 120_000);

  test("to: the reply is sent to the requested recipient", async () => {
    const { bench, chat } = await start();
    await agent(bench, { channel: "telegram", to: "777" });
    await holds(() => chat.sent.length > 0);
    expect(chat.sent).toEqual(["777: done"]);
  }, 120_000);

  test("model and thinking: an alias selects the model, and the thinking level reaches it", async () => {
    const models = { "hearth:latest": { alias: "fast" } };
    const { bench } = await start({ agents: { defaults: { ...quiet.defaults, models } } });
    await ended(bench, await agent(bench, { model: "FAST", thinking: "high" }));
    expect(bench.runtime.requests[0]).toMatchObject({ model: "hearth:latest", think: "high" });
    expect((await bench.post("agent", { message: "hi", model: "other" })).status).toBe(400);
  }, 120_000);

  test("timeoutSeconds: ends the run, stops the model, and is reported to the main session", async () => {
    const begun = Promise.withResolvers<void>();
    const script = () => (begun.resolve(), { text: "never", until: new Promise(() => {}) });
    const clock: Clock = {
      ...systemClock,
      after(ms, work) {
        if (ms !== 1000) return systemClock.after(ms, work);
        let cancel = (): void => void (isOff = true);
        let isOff = false;
        void begun.promise.then(() => isOff || (cancel = systemClock.after(ms, work))); // its second begins then
        return () => cancel();
      },
    };
    const { bench, chat } = await start({ script, clock });
    const runId = await agent(bench, { timeoutSeconds: 1 });
    await ended(bench, runId);
    await holds(async () => bench.runtime.stopped.length === 1 && (await bench.events()).length === 1);
    expect([(await bench.events())[0], chat.sent]).toEqual([expect.stringContaining("Hook (timeout): "), []]);
  }, 120_000);
});

describe("POST {hooks.path}/<name>", () => {
  test("preset mail: every message runs with its sender, subject and snippet", async () => {
    const { bench } = await start({ hooks: { presets: ["mail"] } });
    const message = (n: number) => ({
      id: `m${n}`,
      from: `a${n}@example.com`,
      subject: `About ${n}`,
      snippet: `Dear ${n}`,
    });
    const response = await bench.post("mail", { source: "mail", messages: [message(1), message(2)] });
    expect(response.status).toBe(202);
    await holds(async () => bench.prompts().filter((prompt) => prompt.includes("About")).length === 2);
    for (const n of [1, 2]) {
      const prompt = bench.prompts().find((each) => each.includes(`About ${n}`));
      expect([prompt?.includes(`a${n}@example.com`), prompt?.includes(`Dear ${n}`)]).toEqual([true, true]);
    }
  }, 120_000);

  test("allowUnsafeExternalContent: omits the boundary for that mapping only", async () => {
    const mapping = (path: string, more: object) => ({
      match: { path },
      messageTemplate: "{{payload.t}}",
      deliver: false,
      ...more,
    });
    const { bench } = await start({
      hooks: { mappings: [mapping("safe", {}), mapping("raw", { allowUnsafeExternalContent: true })] },
    });
    for (const path of ["safe", "raw"]) expect((await bench.post(path, { t: `text of ${path}` })).status).toBe(202);
    const of = (path: string) =>
      bench.prompts().find((prompt) => prompt.includes(`text of ${path}`) && !/Hook/.test(prompt));
    await holds(() => of("safe") !== undefined && of("raw") !== undefined);
    expect(["safe", "raw"].map((path) => /external/i.test(of(path)!))).toEqual([true, false]);
  }, 120_000);

  test("channel and to of a mapping select the recipient, and a wake mapping queues an event", async () => {
    const mappings = [
      { match: { source: "ci" }, messageTemplate: "x", channel: "telegram", to: "5", wakeMode: "next-heartbeat" },
      { match: { source: "cron" }, action: "wake", textTemplate: "{{payload.t}}", wakeMode: "next-heartbeat" },
    ];
    const { bench, chat } = await start({ hooks: { mappings } });
    expect((await bench.post("in", { source: "cron", t: "tick" })).status).toBe(200);
    await holds(async () => (await bench.events()).length === 1);
    expect(await bench.events()).toEqual(["tick"]);
    expect((await bench.post("in", { source: "ci" })).status).toBe(202);
    await holds(() => chat.sent.length === 1);
    expect(chat.sent).toEqual(["5: done"]);
  }, 120_000);
});
