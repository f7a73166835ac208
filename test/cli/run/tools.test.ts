/** `hearth run --tools`: the real program, a scripted model, and a real tool server. */
import { mkdtempSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { afterAll, beforeAll, beforeEach, expect, test } from "bun:test";
import { readMcpServers, type McpServers } from "../../../src/runtime/mcp/index.ts";
import type { ChatRequest, InferenceEvent } from "../../../src/runtime/requests/runtime.ts";
import { HEARTH } from "../../program.ts";
import { DONE, play } from "../../server/fakes.ts";
import { makeHarness, type Harness } from "../../server/harness.ts";

const ROOT = join(import.meta.dir, "../../..");
const EVERYTHING = join(ROOT, "node_modules/@modelcontextprotocol/server-everything/dist/index.js");

let harness: Harness;
let servers: McpServers;
let home: string;
let url: string;
beforeAll(async () => {
  home = mkdtempSync(join(tmpdir(), "hearth-run-tools-"));
  const config = join(home, "hearth.json5");
  const all = { command: process.execPath, args: [EVERYTHING, "stdio"], harmless: ["echo"] };
  const broken = { command: "/no/such/program" };
  writeFileSync(config, JSON.stringify({ mcp: { servers: { all, broken } } }));
  servers = readMcpServers({ env: {}, flags: { config }, home });
  harness = await makeHarness({}, { mcp: servers });
  ({ url } = harness.listen());
});
afterAll(async () => {
  await harness.close();
  await servers.close();
  rmSync(home, { recursive: true });
});
beforeEach(() => void (harness.runtime.requests.length = 0));

/** The model calls a tool, and then says what it returned. */
function calls(name: string, args: Record<string, unknown>): void {
  harness.runtime.script = (request) => {
    const result = (request as ChatRequest).messages.find(({ role }) => role === "tool");
    const call: InferenceEvent = { kind: "toolCall", call: { function: { name, arguments: args } } };
    return play(result ? [{ kind: "text", text: `It says: ${result.content}` }, DONE] : [call, DONE])(request);
  };
}

async function hearth(...args: readonly string[]): Promise<{ out: string; err: string; code: number }> {
  const env = { PATH: process.env["PATH"] ?? "", HEARTH_HOME: home, HEARTH_HOST: url };
  const child = Bun.spawn([...HEARTH, ...args], {
    env,
    stdin: "ignore",
    stdout: "pipe",
    stderr: "pipe",
  });
  const [out, err, code] = await Promise.all([
    new Response(child.stdout).text(),
    new Response(child.stderr).text(),
    child.exited,
  ]);
  return { out, err, code };
}

test("the list has each server's tools, or its error", async () => {
  const { servers: listed } = (await (await fetch(`${url}/api/mcp`)).json()) as any;
  const [all, broken] = listed;
  expect(all.tools.find(({ tool }: any) => tool === "echo")).toMatchObject({
    harmless: true,
    definition: { type: "function", function: { name: "all__echo", parameters: { type: "object" } } },
  });
  expect(broken).toMatchObject({ name: "broken", tools: [], problem: expect.stringContaining("cannot start") });
});

test("a call returns its result, marked as untrusted for the model", async () => {
  const post = (body: object): Promise<Response> =>
    fetch(`${url}/api/mcp/call`, { method: "POST", body: JSON.stringify(body) });
  const answer = (await (await post({ server: "all", tool: "echo", arguments: { message: "ü" } })).json()) as any;
  expect(answer).toMatchObject({ text: "Echo: ü", is_error: false });
  expect(answer.content).toContain("EXTERNAL_UNTRUSTED_CONTENT");
  expect((await post({ server: "none", tool: "echo" })).status).toBe(404);
});

test("a harmless tool is called without a question, and the model answers with its result", async () => {
  calls("all__echo", { message: "hi" });
  const { out, err, code } = await hearth("run", "m", "--tools", "all", "say hi");
  expect(code).toBe(0);
  expect(out).toContain("Echo: hi");
  expect(err).toContain('all/echo {"message":"hi"}');
  expect((harness.runtime.requests[0] as ChatRequest).tools?.length).toBeGreaterThan(3);
}, 30_000);

test("another tool is not called without a terminal to ask at, and the model gets the refusal", async () => {
  calls("all__get-sum", { a: 1, b: 2 });
  const { out, err } = await hearth("run", "m", "--tools", "all", "add");
  expect(err).toContain("not called");
  expect(out).toContain("It says: error: the person refused this call");
}, 30_000);

test("an unknown server is an error that names it", async () => {
  const { err, code } = await hearth("run", "m", "--tools", "nope", "hi");
  expect(code).not.toBe(0);
  expect(err).toContain("expected some of all, broken, got 'nope'");
}, 30_000);
