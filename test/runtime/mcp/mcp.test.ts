/** Tool servers: the protocol's own example servers over both transports, and scripted ones that misbehave. */
import { mkdtemp, rm, writeFile } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { heapStats } from "bun:jsc";
import { afterEach, beforeEach, describe, expect, test } from "bun:test";
import { type McpServer, type McpServers, readMcpServers } from "../../../src/runtime/mcp/index.ts";
import { afterTest, cleanUp } from "../../cleanups.ts";
import { everythingOverHttp, example } from "./example-servers.ts";

const SCRIPTED = join(import.meta.dir, "scripted-server.ts");

let folder: string;
beforeEach(async () => {
  folder = await mkdtemp(join(tmpdir(), "hearth-mcp-"));
  afterTest(() => rm(folder, { recursive: true }));
});
afterEach(cleanUp);

async function read(servers: unknown, env: Record<string, string> = {}): Promise<McpServers> {
  const path = join(folder, "hearth.json5");
  await writeFile(path, JSON.stringify({ mcp: { servers } }));
  const found = readMcpServers({ env, flags: { config: path }, home: folder });
  afterTest(() => found.close());
  return found;
}

/** A server of the configuration; a list is the arguments of the runtime that runs this test. */
async function open(given: readonly string[] | object, env: Record<string, string> = {}): Promise<McpServer> {
  const config = Array.isArray(given) ? { command: process.execPath, args: given } : given;
  return (await read({ one: { connectTimeout: "10s", callTimeout: "10s", ...config } }, env)).get("one");
}
const scripted = (how: string, more: object = {}): Promise<McpServer> =>
  open({ command: process.execPath, args: [SCRIPTED, how, join(folder, "mark")], ...more });

describe("example servers", () => {
  test("'everything' over standard input and output lists its tools and runs them", async () => {
    const server = await open([example("everything"), "stdio"]);
    expect((await server.about()).server).toMatch(/everything/);
    const { tools, problems } = await server.tools();
    expect(problems).toEqual([]);
    expect(tools.map(({ name }) => name)).toContain("echo");
    expect(await server.call("echo", { message: "ü" })).toEqual({ text: "Echo: ü", isError: false });
    expect((await server.call("get-tiny-image", {})).text).toMatch(
      /\[image image\/png, \d+ characters of base64: left out\]/,
    );
    expect(await server.call("echo", { message: 3 })).toMatchObject({ isError: true });
  }, 30_000);

  test("'filesystem' reads an allowed file, and gives an error for another", async () => {
    await writeFile(join(folder, "note.txt"), "hello from a file");
    const server = await open([example("filesystem"), folder]);
    expect(await server.call("read_text_file", { path: join(folder, "note.txt") })).toEqual({
      text: "hello from a file",
      isError: false,
    });
    expect(await server.call("read_text_file", { path: "/etc/passwd" })).toMatchObject({ isError: true });
  }, 30_000);

  test("'everything' over HTTP answers, also after a restart lost its sessions", async () => {
    const { url, stop, start } = await everythingOverHttp();
    const server = await open({ url });
    expect(await server.call("echo", { message: "a" })).toEqual({ text: "Echo: a", isError: false });
    await stop();
    await expect(server.call("echo", { message: "b" })).rejects.toThrow("MCP server 'one': ");
    await start();
    expect(await server.call("echo", { message: "c" })).toEqual({ text: "Echo: c", isError: false });
  }, 60_000);
});

describe("a server that", () => {
  test.each([
    ["hangs at once", "hangs-at-once", "it did not answer within 300 ms"],
    ["dies at once", "dies-at-once", "Connection closed; its last output: no licence found"],
    ["lists no tools", "no-list", "no list of tools"],
    ["lists too many", "many-tools", "more than 256 tools"],
    ["lists for ever", "endless-pages", "more than 32 pages"],
  ])(
    "%s fails with its reason",
    async (_, how, reason) => {
      const server = await scripted(how, how === "hangs-at-once" ? { connectTimeout: "300ms" } : {});
      await expect(server.tools()).rejects.toThrow(reason);
    },
    30_000,
  );

  test("does not exist fails with its command's name", async () => {
    const server = await open({ command: "no-such-program-here" });
    await expect(server.tools()).rejects.toThrow("cannot start 'no-such-program-here': ENOENT");
  });

  test("hangs in a call fails the call at its time limit or at the client's signal", async () => {
    const server = await scripted("hangs", { callTimeout: "300ms" });
    await server.tools();
    await expect(server.call("t", {})).rejects.toThrow("timed out");
    const patient = await scripted("hangs");
    await expect(patient.call("t", {}, AbortSignal.timeout(200))).rejects.toThrow();
  }, 30_000);

  test.each([
    ["floods", "a message of it is too large"],
    ["chatters", "messages that no request asked for"],
  ])(
    "%s loses its connection",
    async (how, reason) => {
      const server = await scripted(how);
      await expect(server.call("t", {})).rejects.toThrow(reason);
    },
    30_000,
  );

  test.skipIf(process.platform === "win32")(
    "floods through a shell loses its connection, and nobody reads what its child writes on",
    async () => {
      const ended = join(folder, "ended");
      const server = await open({ command: "sh", args: ["-c", '(yes; : >"$0") & wait', ended], connectTimeout: "5m" });
      await expect(server.tools()).rejects.toThrow("messages that no request asked for");
      while (!(await Bun.file(ended).exists())) await Bun.sleep(10); // a write to the closed pipe ends `yes`
    },
    120_000,
  );

  test("hangs at once does not hold up the one who closes it", async () => {
    const server = await scripted("hangs-at-once");
    const listed = server.tools().catch((error: Error) => error.message);
    await server.close();
    expect(await listed).toContain("it was closed before it answered");
  });

  test("dies in a call fails that call, and is started again for the next", async () => {
    const server = await scripted("dies");
    await expect(server.call("t", {})).rejects.toThrow("Connection closed");
    expect(await server.call("t", {})).toEqual({ text: "done", isError: false });
  }, 30_000);

  test("answers twice gives one result per call", async () => {
    const server = await scripted("twice");
    for (let i = 0; i < 3; i++) expect(await server.call("t", {})).toEqual({ text: "done", isError: false });
  }, 30_000);

  test("lists invalid tools keeps the valid one, and reports each problem", async () => {
    const { tools, problems } = await (await scripted("lies")).tools();
    expect(tools).toEqual([
      { name: "good", description: "is good", inputSchema: { type: "object" }, isRepeatable: false },
    ]);
    expect(problems).toHaveLength(6);
    expect(problems.join("\n")).toContain("there are two tools 'good'");
    expect(problems.join("\n")).toContain("the schema of 'list' does not describe an object");
  }, 30_000);

  test("answers again and again leaves no answer in memory", async () => {
    const server = await scripted("works");
    const promises = async (): Promise<number> => {
      for (let i = 0; i < 100; i++) await server.call("t", {});
      Bun.gc(true);
      return heapStats().objectTypeCounts["Promise"] ?? 0;
    };
    const before = await promises();
    expect((await promises()) - before).toBeLessThan(50);
  });

  test("answers at length has its text cut to 32,000 characters", async () => {
    const { text } = await (await scripted("long")).call("t", {});
    expect(text).toHaveLength(32_000 + "… (cut)".length);
  }, 30_000);
});

describe("secrets", () => {
  test("reach a program only from the variables that its configuration names", async () => {
    const config = { command: process.execPath, args: [SCRIPTED, "environment"], env: ["WANTED"] };
    const server = await open(config, { WANTED: "1", UNWANTED: "2" });
    const names = (await server.call("t", {})).text.split(" ");
    expect(names).toContain("WANTED");
    expect(names).not.toContain("UNWANTED");
    expect(names).not.toContain("HEARTH_TEST_SEED");
  }, 30_000);

  test("reach headers from environment variables, and an unset one is an error that names it", async () => {
    let seen: string | null = null;
    const http = Bun.serve({
      port: 0,
      fetch: ({ headers }) => {
        seen = headers.get("authorization");
        return new Response("no", { status: 403 });
      },
    });
    afterTest(() => http.stop(true));
    const config = { url: `http://127.0.0.1:${http.port}/mcp`, headers: { Authorization: "TOKEN" } };
    await expect((await open(config, { TOKEN: "Bearer s3cret" })).tools()).rejects.toThrow("MCP server 'one': ");
    expect(seen!).toBe("Bearer s3cret");
    await expect((await open(config)).tools()).rejects.toThrow(
      "mcp.servers.one.headers: the environment variable TOKEN is not set",
    );
  });

  test("an HTTP answer without end is refused beyond 8 MiB", async () => {
    const body = (): ReadableStream<Uint8Array> =>
      new ReadableStream({ pull: (controller) => controller.enqueue(new Uint8Array(65_536).fill(32)) });
    const http = Bun.serve({
      port: 0,
      fetch: () => new Response(body(), { headers: { "content-type": "application/json" } }),
    });
    afterTest(() => http.stop(true));
    const server = await open({ url: `http://127.0.0.1:${http.port}/mcp` });
    await expect(server.tools()).rejects.toThrow("more than 8388608 bytes");
  }, 30_000);
});

describe("configuration", () => {
  test.each([
    [{ one: {} }, "mcp.servers.one: expected either 'command' or 'url'"],
    [{ one: { command: "x", url: "http://x" } }, "mcp.servers.one: expected either 'command' or 'url'"],
    [{ one: { comand: "x" } }, "mcp.servers.one.comand: unknown key; did you mean 'command'?"],
    [{ one: { command: "x", env: ["TOKEN=abc"] } }, "expected the name of an environment variable, not its value"],
    [{ one: { command: "x", headers: {} } }, "mcp.servers.one.headers: belongs to 'url'"],
    [{ one: { url: "http://x", args: [] } }, "mcp.servers.one.args: belongs to 'command'"],
    [{ one: { url: "ftp://x" } }, "mcp.servers.one.url: expected an http:// or https:// address"],
    [{ one: { url: "http://user:pw@x" } }, "mcp.servers.one.url: expected an http:// or https:// address"],
    [{ one: { url: "http://x", headers: { "a b": "X" } } }, "mcp.servers.one.headers: expected names of HTTP headers"],
    [{ one: { command: "x", callTimeout: "2h" } }, "mcp.servers.one.callTimeout: expected a duration"],
    [{ "1x": { command: "x" } }, "mcp.servers.1x: expected a name of at most 64 letters"],
  ])("%j is refused with its place", async (servers, message) => {
    await expect(read(servers)).rejects.toThrow(message);
  });

  test("a name that is not configured gets the nearest", async () => {
    const servers = await read({ files: { command: "x" } });
    expect(() => servers.get("file")).toThrow("there is no MCP server \"file\": did you mean 'files'?");
    expect(servers.all).toMatchObject([{ name: "files", transport: "stdio", target: "x" }]);
  });
});
