/** Hearth as a tool server at `/mcp`, asked by the protocol's own client. */
import { mkdtempSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { afterEach, expect, test } from "bun:test";
import { Client } from "@modelcontextprotocol/sdk/client/index.js";
import { StreamableHTTPClientTransport } from "@modelcontextprotocol/sdk/client/streamableHttp.js";
import { readMcpServers } from "../../src/runtime/mcp/index.ts";
import { afterTest, cleanUp } from "../cleanups.ts";
import { HOOK_TOKEN, startGateway } from "../gateway/operate/world.ts";
import { hello } from "./fakes.ts";
import { makeHarness } from "./harness.ts";

afterEach(cleanUp);

async function served(mcp: object, apiKeys: string[] = []): Promise<string> {
  const home = mkdtempSync(join(tmpdir(), "hearth-mcp-served-"));
  const config = join(home, "hearth.json5");
  writeFileSync(config, JSON.stringify({ mcp }));
  const harness = await makeHarness({ apiKeys }, { mcp: readMcpServers({ env: {}, flags: { config }, home }) });
  harness.runtime.script = hello;
  afterTest(async () => {
    await harness.close();
    rmSync(home, { recursive: true });
  });
  return harness.listen().url;
}

async function connect(url: string, headers: Record<string, string> = {}): Promise<Client> {
  const client = new Client({ name: "test", version: "1" });
  const transport = new StreamableHTTPClientTransport(new URL(`${url}/mcp`), { requestInit: { headers } });
  await client.connect(transport as Parameters<Client["connect"]>[0]);
  afterTest(() => client.close());
  return client;
}

const textOf = (result: any): string => result.content[0].text;

test("MCP is off unless the configuration turns it on", async () => {
  const url = await served({});
  const response = await fetch(`${url}/mcp`, { method: "POST", body: "{}" });
  expect(response.status).toBe(404);
  expect(await response.text()).toContain("mcp.serve");
});

test("the protocol's client lists its tools and calls them", async () => {
  const client = await connect(await served({ serve: true }));
  const { tools } = await client.listTools();
  expect(tools.map(({ name }) => name)).toEqual(["list_models", "chat", "embed", "rerank"]);
  const models = await client.callTool({ name: "list_models", arguments: {} });
  expect(JSON.parse(textOf(models))).toHaveProperty("models");
  const answer = await client.callTool({ name: "chat", arguments: { model: "m", prompt: "hi" } });
  expect(answer).toMatchObject({ content: [{ type: "text" }] });
  expect(textOf(answer)).not.toBe("");
  expect(textOf(answer)).not.toContain("{");
});

test("MCP requires a key if the server has keys", async () => {
  const url = await served({ serve: true }, ["secret"]);
  const ask = (headers: Record<string, string>) =>
    fetch(`${url}/mcp`, { method: "POST", headers, body: '{"jsonrpc":"2.0","id":1,"method":"tools/list"}' });
  expect((await ask({})).status).toBe(401);
  expect((await ask({ authorization: "Bearer wrong" })).status).toBe(401);
  expect((await ask({ authorization: "Bearer secret" })).status).not.toBe(401);
});

test("an error of an endpoint is a failed tool call, and unknown tools and messages are refused", async () => {
  const url = await served({ serve: true });
  const client = await connect(url);
  expect(await client.callTool({ name: "chat", arguments: { model: "", prompt: "hi" } })).toMatchObject({
    isError: true,
  });
  expect(await client.callTool({ name: "delete", arguments: {} })).toMatchObject({ isError: true });
  expect((await fetch(`${url}/mcp`, { method: "POST", body: "[]" })).status).toBe(400);
  expect((await fetch(`${url}/mcp`)).status).toBe(405);
});

test("with webhooks, run_agent and post_event reach the agent, with the hook token only", async () => {
  const world = await startGateway({ servers: {} });
  const client = await connect(world.url, { "x-gateway-token": HOOK_TOKEN });
  const { tools } = await client.listTools();
  expect(tools.map(({ name }) => name)).toContain("run_agent");
  const ran = await client.callTool({ name: "run_agent", arguments: { message: "do it" } });
  expect(textOf(ran)).toContain("Done it.");
  const posted = await client.callTool({ name: "post_event", arguments: { text: "it rains" } });
  expect(posted["isError"] ?? false).toBe(false);
  const stranger = await connect(world.url);
  expect(await stranger.callTool({ name: "run_agent", arguments: { message: "x" } })).toMatchObject({ isError: true });
});

test("a client that leaves while a tool server hangs is no bug of ours", async () => {
  const home = mkdtempSync(join(tmpdir(), "hearth-mcp-hangs-"));
  const config = join(home, "hearth.json5");
  const args = [join(import.meta.dir, "../runtime/mcp/scripted-server.ts"), "hangs-at-once"];
  writeFileSync(config, JSON.stringify({ mcp: { servers: { hangs: { command: process.execPath, args } } } }));
  const mcp = readMcpServers({ env: {}, flags: { config }, home });
  const harness = await makeHarness({}, { mcp });
  afterTest(async () => {
    await harness.close();
    await mcp.close();
    rmSync(home, { recursive: true });
  });
  const client = new AbortController();
  const answer = harness.app.handle(new Request("http://localhost/api/mcp", { signal: client.signal }));
  await new Promise(setImmediate);
  client.abort();
  expect((await answer).status).toBe(499);
  expect(harness.logs.filter(({ level }) => level === "error")).toEqual([]);
});
