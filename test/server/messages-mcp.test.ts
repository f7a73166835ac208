/** `mcp_servers` in `/v1/messages`: the server runs the calls of a scripted model on real tool servers. */
import { mkdtempSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { afterAll, beforeAll, beforeEach, describe, expect, test } from "bun:test";
import Anthropic from "@anthropic-ai/sdk";
import type { ChatRequest, InferenceEvent } from "../../src/runtime/requests/runtime.ts";
import { type McpServers, readMcpServers } from "../../src/runtime/mcp/index.ts";
import { DONE, hello, play } from "./fakes.ts";
import { makeHarness, type Harness } from "./harness.ts";

const EVERYTHING = join(import.meta.dir, "../../node_modules/@modelcontextprotocol/server-everything/dist/index.js");

let home: string;
const open: (() => Promise<unknown>)[] = [];
/** Servers whose requests may name these addresses. */
const worlds = new Map<string, { harness: Harness; url: string }>();
beforeAll(async () => {
  home = mkdtempSync(join(tmpdir(), "hearth-mcp-"));
  const all = { command: process.execPath, args: [EVERYTHING, "stdio"] };
  for (const requestAddresses of ["none", "public", "all"]) {
    const config = join(home, `${requestAddresses}.json5`);
    writeFileSync(config, JSON.stringify({ mcp: { serve: true, requestAddresses, servers: { all } } }));
    const mcp: McpServers = readMcpServers({ env: {}, flags: { config }, home });
    const harness = await makeHarness({}, { mcp });
    worlds.set(requestAddresses, { harness, url: harness.listen().url });
    open.push(() => harness.close().then(() => mcp.close()));
  }
});
afterAll(async () => {
  for (const close of open) await close();
  rmSync(home, { recursive: true });
});
beforeEach(() => {
  for (const { harness } of worlds.values()) {
    harness.runtime.script = hello;
    harness.runtime.requests.length = 0;
  }
});

const world = (addresses = "none") => worlds.get(addresses)!;
const asked = (addresses?: string) => world(addresses).harness.runtime.requests as ChatRequest[];
const post = (body: object, { addresses = "none", path = "/v1/messages" } = {}): Promise<Response> =>
  fetch(world(addresses).url + path, { method: "POST", body: JSON.stringify({ ...BASE, ...body }) });
const BASE = { model: "m", max_tokens: 64, messages: [{ role: "user" as const, content: "hi" }] };
const call = (name: string, args: Record<string, unknown>): InferenceEvent => ({
  kind: "toolCall",
  call: { function: { name, arguments: args } },
});
/** Plays one list of events for each request. */
function rounds(addresses: string, ...answers: InferenceEvent[][]): void {
  let next = 0;
  world(addresses).harness.runtime.script = (request) => play(answers[next++]!)(request);
}
const said = (text: string): InferenceEvent => ({ kind: "text", text });

/** Only `echo`, in the words of the current version of the API. */
const ECHO = {
  ...BASE,
  betas: ["mcp-client-2025-11-20"],
  mcp_servers: [{ type: "url" as const, name: "all", url: "" }],
  tools: [
    {
      type: "mcp_toolset" as const,
      mcp_server_name: "all",
      default_config: { enabled: false },
      configs: { echo: { enabled: true } },
    },
  ],
};

describe("the client of the API", () => {
  const client = (): Anthropic => new Anthropic({ apiKey: "-", baseURL: world().url });

  test("gets calls and results as blocks, and can send them back", async () => {
    rounds("none", [said("Let me see."), call("all__echo", { message: "ü" }), DONE], [said("It said ü."), DONE]);
    const first = await client().beta.messages.create(ECHO);
    const id = expect.stringMatching(/^mcptoolu_[0-9a-f]{24}$/);
    expect(first.content).toEqual([
      { type: "text", text: "Let me see." },
      { type: "mcp_tool_use", id, name: "echo", server_name: "all", input: { message: "ü" } },
      { type: "mcp_tool_result", tool_use_id: id, is_error: false, content: [{ type: "text", text: "Echo: ü" }] },
      { type: "text", text: "It said ü." },
    ] as never);
    expect([first.stop_reason, first.usage.output_tokens]).toEqual(["end_turn", 4]);
    expect(asked()[0]!.tools?.map((tool) => tool.function.name)).toEqual(["all__echo"]);
    expect(asked()[1]!.messages.at(-1)!.content).toMatch(/^What stands between <<<[^]*Echo: ü/);

    rounds("none", [said("Yes."), DONE]);
    const answer = { role: "assistant" as const, content: first.content as Anthropic.Beta.BetaContentBlockParam[] };
    await client().beta.messages.create({ ...ECHO, messages: [...ECHO.messages, answer, ...ECHO.messages] });
    const roles = asked()
      .at(-1)!
      .messages.map(({ role }) => role);
    expect(roles).toEqual(["user", "assistant", "tool", "assistant", "user"]);
    expect(asked().at(-1)!.messages[2]).toMatchObject({
      tool_name: "all__echo",
      content: expect.stringMatching(/^What stands between /),
    });
  }, 30_000);

  test("gets calls and results in a stream", async () => {
    rounds("none", [call("all__echo", { message: 3 }), DONE], [said("Sorry."), DONE]);
    const stream = client().beta.messages.stream(ECHO);
    const types: string[] = [];
    stream.on("streamEvent", (event) => {
      if (event.type === "content_block_start") types.push(event.content_block.type);
    });
    const { content } = await stream.finalMessage();
    expect(types).toEqual(["mcp_tool_use", "mcp_tool_result", "text"]);
    expect(content[0]).toMatchObject({ input: { message: 3 } });
    expect(content[1]).toMatchObject({ is_error: true, content: [{ text: expect.stringContaining("message") }] });
  }, 30_000);
});

test("tool_configuration selects tools, and counted tokens include the tools", async () => {
  rounds("none", [said("Hi."), DONE]);
  const configured = (tool_configuration: object) => ({
    mcp_servers: [{ type: "url", name: "all", tool_configuration }],
  });
  await post(configured({ allowed_tools: ["echo", "get-sum"] }));
  expect(asked()[0]!.tools?.map((tool) => tool.function.name)).toEqual(["all__echo", "all__get-sum"]);
  rounds("none", [said("Hi."), DONE]);
  await post(configured({ enabled: false }));
  expect(asked()[1]!.tools).toBeUndefined();
  expect((await post(configured({}), { path: "/v1/messages/count_tokens" })).status).toBe(200);
}, 30_000);

test("a call of the client's own tool ends the answer", async () => {
  rounds("none", [call("all__echo", { message: "a" }), call("mine", {}), DONE]);
  const mine = { name: "mine", input_schema: { type: "object" } };
  const reply = await (await post({ mcp_servers: [{ name: "all" }], tools: [mine] })).json();
  const { content, stop_reason } = reply as { content: { type: string }[]; stop_reason: string };
  expect(content.map(({ type }) => type)).toEqual(["tool_use", "mcp_tool_use", "mcp_tool_result"]);
  expect(stop_reason).toBe("tool_use");
}, 30_000);

const NO_ADDRESS = "requests name a server of the configuration, without address or key";
const toolset = (more: object) => ({ type: "mcp_toolset", mcp_server_name: "all", ...more });
test.each<[string, object, string]>([
  ["none", { mcp_servers: [{ name: "al" }] }, "mcp_servers.0.name: there is no MCP server \"al\": did you mean 'all'?"],
  ["none", { mcp_servers: [{ name: "x", url: "https://a.example/" }] }, `mcp_servers.0.url: ${NO_ADDRESS}`],
  ["none", { mcp_servers: [{ name: "all", authorization_token: "k" }] }, "mcp_servers.0.authorization_token: a server"],
  ["none", { mcp_servers: [{ name: "all" }, { name: "all" }] }, "mcp_servers.0.name: expected each name"],
  ["none", { tools: [toolset({})] }, "tools.0.mcp_server_name: expected a name of 'mcp_servers', got \"all\""],
  [
    "none",
    { mcp_servers: [{ name: "all" }], tools: [toolset({ configs: { nope: {} } })] },
    "tools.0: expected names of tools of 'all', got \"nope\"",
  ],
  ["public", { mcp_servers: [{ name: "x", url: "http://a.example/" }] }, "mcp_servers.0.url: expected an https://"],
  ["all", { mcp_servers: [{ name: "x", url: "file:///etc/passwd" }] }, "mcp_servers.0.url: expected an http://"],
  ["all", { mcp_servers: [{ name: "x y", url: "https://a.example/" }] }, "mcp_servers.0.url: expected a name"],
  [
    "all",
    { mcp_servers: [{ name: "x", url: "https://a.example/", authorization_token: "se\ncret" }] },
    "mcp_servers.0.authorization_token: expected names and values of HTTP headers",
  ],
])(
  "a request is refused if addresses are '%s': %j",
  async (addresses, body, message) => {
    const response = await post(body, { addresses });
    expect(response.status).toBe(400);
    const text = await response.text();
    expect(JSON.parse(text).error.message).toContain(message);
    expect(text).not.toContain("cret");
    expect(asked(addresses)).toHaveLength(0);
  },
  30_000,
);

describe("a server that a request names by its address", () => {
  test.each(["https://127.0.0.1/mcp", "https://localhost/mcp", "https://[::ffff:10.0.0.1]/mcp"])(
    "is refused at %s if only public addresses are allowed",
    async (url) => {
      const response = await post({ mcp_servers: [{ name: "x", url }] }, { addresses: "public" });
      expect(response.status).toBe(502);
      expect(await response.text()).toContain("it is not at a public address");
    },
    30_000,
  );

  test("is called if all addresses are allowed, by Messages and Responses", async () => {
    const url = `${world("all").url}/mcp`;
    rounds("all", [call("me__list_models", {}), DONE], [said("One."), DONE]);
    const reply = await (await post({ mcp_servers: [{ name: "me", url }] }, { addresses: "all" })).json();
    expect((reply as { content: object[] }).content[1]).toMatchObject({ type: "mcp_tool_result", is_error: false });
    rounds("all", [call("me__list_models", {}), DONE], [said("One."), DONE]);
    const mcp = { type: "mcp", server_label: "me", server_url: url, require_approval: "never", authorization: "k" };
    const response = await fetch(`${world("all").url}/v1/responses`, {
      method: "POST",
      body: JSON.stringify({ model: "m", input: "hi", tools: [mcp] }),
    });
    const { output } = (await response.json()) as { output: object[] };
    expect(output[1]).toMatchObject({
      type: "mcp_call",
      status: "completed",
      output: expect.stringContaining("m:latest"),
    });
    expect(JSON.stringify(output)).not.toContain('"k"');
  }, 30_000);
});
