/** Turns of webhooks that call tools of tool servers: which ones, after which approval, and how often. */
import { existsSync, mkdtempSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { afterEach, beforeEach, describe, expect, test } from "bun:test";
import type { HeartbeatStatus } from "../../../src/gateway/agent/heartbeat.ts";
import { execute } from "../../../src/gateway/database/store.ts";
import type { ToolCall } from "../../../src/runtime/requests/runtime.ts";
import { eventually, runHearth } from "../../e2e/hearth.ts";
import { afterTest, cleanUp } from "../../cleanups.ts";
import type { Script } from "../agent/scripted-runtime.ts";
import { everythingOverHttp, example } from "../../runtime/mcp/example-servers.ts";
import { startChat } from "./fixtures.ts";
import { GATEWAY_TOKEN, json, startGateway, type GatewayWorld, type GatewayWorldOptions } from "./world.ts";

const WAIT_MS = 60_000;
const SERVER = join(import.meta.dir, "../agent/effect-server.ts");

let folder: string;
beforeEach(() => {
  folder = mkdtempSync(join(tmpdir(), "hearth-calls-"));
  afterTest(() => rmSync(folder, { recursive: true, force: true }));
});
afterEach(cleanUp);

const call = (tool: string, args: object): ToolCall => ({
  id: `call_${tool}`,
  function: { name: `fx__${tool}`, arguments: args as Record<string, unknown> },
});

/** The model calls the tools, and then says what they returned. */
const calling =
  (...calls: readonly ToolCall[]): Script =>
  ({ messages }) => {
    const results = messages.filter(({ role }) => role === "tool");
    return results.length === 0 ? { calls } : { text: `Done: ${results.map(({ content }) => content).join(" | ")}` };
  };

async function waitUntil(check: () => Promise<boolean>): Promise<void> {
  if (!(await eventually(check, WAIT_MS))) throw new Error("it did not happen in time");
}

const effects = (): string[] =>
  existsSync(join(folder, "effects")) ? readFileSync(join(folder, "effects"), "utf8").split("\n").slice(0, -1) : [];

interface Options extends Pick<GatewayWorldOptions, "script" | "home"> {
  readonly tools?: readonly string[];
  /** Settings of the server `fx`. */
  readonly server?: object;
  /** Instead of `fx`. */
  readonly servers?: Record<string, object>;
  readonly mapping?: object;
  readonly settings?: object;
  /** `hooks.queue`. */
  readonly queue?: object;
}

const start = ({
  tools = ["fx/*"],
  server = {},
  mapping = {},
  settings,
  queue = {},
  servers,
  ...options
}: Options): Promise<GatewayWorld> =>
  startGateway({
    ...options,
    servers: servers ?? {
      fx: { command: process.execPath, args: [SERVER, join(folder, "effects")], connectTimeout: "20s", ...server },
    },
    settings: {
      ...settings,
      hooks: {
        queue,
        mappings: [
          {
            id: "m",
            match: { path: "m" },
            messageTemplate: "{{payload.text}}",
            tools,
            deliver: false,
            wakeMode: "next-heartbeat", // a heartbeat would ask the model too
            ...mapping,
          },
        ],
      },
    },
  });

async function send({ hook }: GatewayWorld, text = "please"): Promise<string> {
  return (await json(await hook("m", { text })))["runId"];
}

const runOf = async ({ admin }: GatewayWorld, id: string): Promise<any> =>
  (await json(await admin(`deliveries/${id}`)))["runs"].find((run: any) => run.id === id);

async function ended(world: GatewayWorld, id: string): Promise<any> {
  await waitUntil(async () => ["succeeded", "failed", "dead"].includes((await runOf(world, id)).state));
  return runOf(world, id);
}

const approvals = async ({ admin }: GatewayWorld): Promise<any[]> =>
  (await json(await admin("approvals")))["approvals"];

async function waiting(world: GatewayWorld): Promise<any> {
  await waitUntil(async () => (await approvals(world)).length > 0);
  return (await approvals(world))[0];
}

test("a mapping without tools offers none to the model", async () => {
  const world = await start({ tools: [], script: () => ({ text: "Hello." }) });
  expect((await ended(world, await send(world))).answer).toBe("Hello.");
  expect(world.runtime.requests[0]?.tools).toBeUndefined();
});

test("a mapping offers its named tools without the argument for the idempotency key", async () => {
  const server = { idempotencyKeys: { keyed: "key" } };
  const world = await start({ tools: ["fx/keyed", "current_time"], server, script: () => ({ text: "Hello." }) });
  await ended(world, await send(world));
  const offered = world.runtime.requests[0]?.tools?.map(({ function: each }) => each);
  expect(offered?.map(({ name }) => name)).toEqual(["current_time", "fx__keyed"]);
  expect(offered?.[1]?.parameters).toMatchObject({ properties: { n: { type: "string" } }, required: ["n"] });
  expect(JSON.stringify(offered?.[1]?.parameters)).not.toContain('"key"');
});

test("a harmless tool is called without an approval, and its result is external text", async () => {
  const world = await start({ server: { harmless: ["once"] }, script: calling(call("once", { n: "1" })) });
  const { answer } = await ended(world, await send(world));
  expect(effects()).toEqual(["once 1 "]);
  expect(answer).toContain("did once 1");
  expect(answer).toContain("EXTERNAL_UNTRUSTED_CONTENT");
  expect(await approvals(world)).toEqual([]);
});

test("a tool that is not harmless waits for an approval, also across a restart", async () => {
  const home = mkdtempSync(join(tmpdir(), "hearth-home-"));
  afterTest(() => rmSync(home, { recursive: true, force: true }));
  const script = calling(call("once", { n: "1" }));
  const first = await start({ script, home });
  const runId = await send(first);
  expect(await waiting(first)).toMatchObject({ tool: "fx/once", arguments: { n: "1" }, runId });
  await waitUntil(async () => (await runOf(first, runId)).state === "queued");
  expect(await runOf(first, runId)).toMatchObject({ reason: "waits for an approval: fx/once", attempts: 0 });
  await first.gateway.stop(0);
  const world = await start({ script, home });
  const { code, digest } = await waiting(world);
  expect(effects()).toEqual([]);
  const wrong = await world.admin(`approvals/${code}`, { body: { verdict: "yes", digest: "0".repeat(64) } });
  expect(wrong.status).toBe(409);
  const right = await json(await world.admin(`approvals/${code}`, { body: { verdict: "yes", digest } }));
  expect(right).toMatchObject({ verdict: "yes", approval: { code } });
  expect((await ended(world, runId)).answer).toContain("did once 1");
  expect(effects()).toEqual(["once 1 "]);
  expect(await approvals(world)).toEqual([]);
  expect([first.runtime.requests.length, world.runtime.requests.length]).toEqual([1, 1]);
}, 120_000);

test("an approval is not valid for arguments that changed after it was requested", async () => {
  const world = await start({ script: calling(call("once", { n: "1" })) });
  const runId = await send(world);
  const { code } = await waiting(world);
  await waitUntil(async () => (await runOf(world, runId)).state === "queued");
  await world.gateway.store.write(() => execute("UPDATE tool_calls SET arguments = $1", '{"n":"2"}'));
  await world.admin(`approvals/${code}`, { body: { verdict: "yes" } });
  expect((await ended(world, runId)).answer).toContain("the approval is for another call");
  expect(effects()).toEqual([]);
});

test("a refused call is not made, and the model gets the refusal", async () => {
  const world = await start({ script: calling(call("once", { n: "1" })) });
  const runId = await send(world);
  const { code } = await waiting(world);
  await waitUntil(async () => (await runOf(world, runId)).state === "queued");
  expect((await world.admin(`approvals/${code.toLowerCase()}`, { body: { verdict: "no" } })).status).toBe(200);
  expect((await ended(world, runId)).answer).toContain("an operator refused the call");
  expect((await world.admin(`approvals/${code}`, { body: { verdict: "yes" } })).status).toBe(409);
  expect((await world.admin("approvals/ZZZZZZZZ", { body: { verdict: "yes" } })).status).toBe(404);
  expect((await world.admin(`approvals/${code}`, { body: { verdict: "maybe" } })).status).toBe(400);
  expect(effects()).toEqual([]);
});

test("the chat of the reply is asked, and only an answer there with the code decides", async () => {
  const chat = startChat();
  const world = await start({
    script: calling(call("once", { n: "1\u202e\n**Reply** `yes`" })),
    mapping: { deliver: true, channel: "telegram", to: "{{payload.chat}}" },
    settings: { channels: { telegram: { botToken: "123:abc", baseUrl: chat.url } } },
  });
  const say = async (text: string, to: string): Promise<string> =>
    (await json(await world.hook("m", { text, chat: to })))["runId"];
  const texts = (): string[] => chat.sent.map((line) => line.replace(/^\d+: /, ""));
  const runId = await say("please", "42");
  await waitUntil(async () => texts().length === 1);
  const [question = ""] = texts();
  expect(question).toMatch(/^Approval needed: may fx\/once be called\?\n\{.*\}\nReply "yes [2-9A-Z]{8}"/);
  expect(question).not.toContain("\u202e");
  expect(question).toContain("**Reply** \\u0060yes\\u0060"); // no Markdown, no end of the code
  const { code } = await waiting(world);
  await say(`yes ${code}`, "43");
  await say("yes 22222222", "42");
  await waitUntil(async () => (await runOf(world, runId)).state === "queued");
  await waitUntil(async () => (await approvals(world)).length === 3); // the two messages began turns of their own
  await say(`yes ${code.toLowerCase()}`, "42");
  expect((await ended(world, runId)).answer).toContain("did once 1");
  await waitUntil(async () => texts().some((text) => text.startsWith("Done:")));
  expect(texts()).toContain("Allowed: fx/once is called once.");
  expect(effects().filter((line) => line.startsWith("once"))).toHaveLength(1);
  expect(JSON.stringify(world.runtime.requests)).not.toContain(`yes ${code.toLowerCase()}`);
  expect((await approvals(world)).map((each) => each.code)).not.toContain(code);
});

test("a call with an unknown outcome is not repeated, and the answer reports it", async () => {
  const server = { harmless: ["hangs"], callTimeout: "300ms" };
  const world = await start({ server, script: calling(call("hangs", { n: "1" })) });
  expect((await ended(world, await send(world))).answer).toContain("Note: a call of fx/hangs was interrupted.");
  await waitUntil(async () => effects().length > 0); // a slow server's call may end before its effect
  expect(effects()).toEqual(["hangs 1 "]);
}, 120_000);

test("a tool that its server lacks ends the turn with the reason", async () => {
  const world = await start({ tools: ["fx/none"], script: () => ({ text: "Hello." }) });
  expect(await ended(world, await send(world))).toMatchObject({
    state: "failed",
    reason: "tools: the MCP server 'fx' has no tool 'none'",
  });
});

test("a tool of an unconfigured server is refused with its place", async () => {
  const other = start({ tools: ["nope/x"] });
  await expect(other).rejects.toThrow("hooks.mappings[0].tools[0]: 'mcp.servers' has no server 'nope'");
});

test("a turn uses the example servers of the protocol over both transports", async () => {
  const { url } = await everythingOverHttp();
  const [path, everything] = [join(folder, "note.txt"), { url, harmless: ["echo"] }];
  writeFileSync(path, "It is written.");
  const files = { command: process.execPath, args: [example("filesystem"), folder], harmless: ["read_text_file"] };
  const named = (name: string, args: Record<string, unknown>): ToolCall => ({ function: { name, arguments: args } });
  const world = await start({
    servers: { everything, files },
    tools: ["everything/echo", "files/read_text_file"],
    script: calling(named("everything__echo", { message: "ü" }), named("files__read_text_file", { path })),
  });
  const { answer } = await ended(world, await send(world));
  expect(answer).toMatch(/Echo: ü[^]*It is written\./);
}, 120_000);

describe("a heartbeat", () => {
  const beat = async (tools: readonly string[], server: object) => {
    const heartbeat = { every: 0, target: "none", prompt: "Is all well?", tools };
    const world = await start({
      server,
      tools: [],
      settings: { agents: { defaults: { model: "m", heartbeat } } },
      script: calling(call("again", { n: "1" })),
    });
    const status = new Promise<HeartbeatStatus>((resolve) => world.gateway.heartbeat.onStatus(resolve));
    world.gateway.heartbeat.request("a test");
    return { ...world, status: await status };
  };
  const harmless = { harmless: ["again", "keyed", "once"], idempotencyKeys: { keyed: "key" } };

  test("calls harmless tools that may be repeated, and is offered no others", async () => {
    const { runtime, status } = await beat(["fx/*"], harmless);
    expect(runtime.requests[0]?.tools?.map(({ function: each }) => each.name)).toEqual(["fx__again"]);
    expect(effects()).toEqual(["again 1 "]);
    expect(runtime.requests[1]?.messages.at(-1)?.content).toContain("EXTERNAL_UNTRUSTED_CONTENT");
    expect(runtime.requests[1]?.messages.at(-1)?.content).toContain("did again 1");
    expect(status).toMatchObject({ kind: "skipped", preview: expect.stringContaining("Done:") });
  });

  test.each(["fx/once", "fx/keyed", "fx/hangs"])("fails if %s is named", async (tool) => {
    const { runtime, status } = await beat([tool], harmless);
    expect(status).toMatchObject({ kind: "failed", reason: expect.stringContaining(`got '${tool}'`) });
    expect(runtime.requests).toEqual([]);
  });

  test("is offered no tools unless its setting names some of a configured server", async () => {
    expect((await beat([], harmless)).runtime.requests[0]?.tools).toBeUndefined();
    await expect(beat(["nope/x"], harmless)).rejects.toThrow(
      "agents.defaults.heartbeat.tools[0]: 'mcp.servers' has no server 'nope'",
    );
  });
});

describe("a turn ends with a result or the reason if its MCP server does:", () => {
  const UNKNOWN = /Note: a call of fx\/t was interrupted/;
  test.each<[how: string, state: string, said: RegExp]>([
    ["hangs-at-once", "dead", /MCP server 'fx': it did not answer within 700 ms/],
    ["dies-at-once", "dead", /MCP server 'fx': .*no licence found/],
    ["no-list", "dead", /has no list of tools/],
    ["many-tools", "dead", /more than 256 tools/],
    ["endless-pages", "dead", /more than \d+ pages/],
    ["hangs", "succeeded", UNKNOWN],
    ["dies", "succeeded", UNKNOWN],
    ["floods", "succeeded", UNKNOWN],
    ["chatters", "succeeded", UNKNOWN],
    ["long", "succeeded", /yyyy… \(cut\)/],
    ["twice", "succeeded", /^Done: [^]*done(?! again)/],
    ["lies", "succeeded", /^Done: [^]*there is no tool 'fx__t'/],
  ])(
    "%s",
    async (how, state, said) => {
      const world = await start({
        server: {
          args: [join(import.meta.dir, "../../runtime/mcp/scripted-server.ts"), how, join(folder, "mark")],
          harmless: ["t", "good"],
          connectTimeout: how === "hangs-at-once" ? "700ms" : "20s",
          callTimeout: ["hangs", "floods", "chatters"].includes(how) ? "1500ms" : "20s",
        },
        queue: { maxAttempts: 1 },
        script: calling(call("t", { n: "1" })),
      });
      const run = await ended(world, await send(world));
      expect(run.state).toBe(state);
      expect(run.answer ?? run.reason).toMatch(said);
    },
    120_000,
  );
});

test("hearth approvals lists a call, refuses a wrong digest, and allows the call", async () => {
  const world = await start({ script: calling(call("once", { n: "1\u202e\n2" })) });
  const runId = await send(world);
  const { code, digest } = await waiting(world);
  const approvals = async (...words: string[]) => {
    const env = { HEARTH_HOST: new URL(world.url).host, HEARTH_GATEWAY_TOKEN: GATEWAY_TOKEN };
    return runHearth(["approvals", ...words], { env, home: folder });
  };
  const listed = await approvals();
  expect(listed.stdout).toMatch(new RegExp(`^${code} +fx/once +\\{"n":"1\\\\n2"\\} +${runId} `, "m"));
  expect(JSON.parse((await approvals("--json")).stdout)).toMatchObject({ approvals: [{ code, digest }] });
  const wrong = await approvals("yes", code, "--digest", "0".repeat(64));
  expect([wrong.code, wrong.stderr]).toEqual([1, expect.stringContaining("the digests of tool and arguments differ")]);
  expect(await approvals("yes", code, "--digest", digest)).toMatchObject({
    stdout: "allowed: fx/once is called once\n",
  });
  expect((await ended(world, runId)).answer).toContain("did once 1");
  expect((await approvals()).stderr).toContain("no call waits for an approval");
}, 120_000);
