/**
 * Ways to a tool server: a program on its standard input and output, or streamable HTTP. Both are bounded here, because
 * the library bounds only one of them. The library is loaded at the first connection.
 */
import type { ChildProcess } from "node:child_process";
import { AppError } from "../../base/index.ts";
import type { ConfigSources } from "../../base/config/index.ts";
import type { ServerConfig } from "./config.ts";

/** Maximum number of bytes of one message, or of one HTTP answer. */
const MESSAGE_BYTES_MAX = 8 * 2 ** 20;
/** Characters of a program's last error output that are kept for messages. */
const TAIL_CHARS = 400;

export interface TransportParts {
  readonly name: string;
  readonly env: ConfigSources["env"];
  readonly folder: string;
  /** For a server that a request names by its address. */
  readonly remote?: { readonly headers: Readonly<Record<string, string>>; readonly isPublicOnly: boolean };
}

/**
 * A transport that is not connected yet; `kill` ends its program at once, `lastWords` returns its last error output.
 */
export async function makeTransport(config: ServerConfig, parts: TransportParts) {
  const { name, env, folder, remote } = parts;
  if (config.url !== undefined) {
    const { StreamableHTTPClientTransport } = await import("@modelcontextprotocol/sdk/client/streamableHttp.js");
    const headers = remote?.headers ?? named(config.headers ?? {}, { env, place: `mcp.servers.${name}.headers` });
    const send = remote?.isPublicOnly ? (await import("./public-fetch.ts")).publicFetch : fetch;
    const transport = new StreamableHTTPClientTransport(new URL(config.url), {
      requestInit: { headers },
      fetch: (url, init) => boundedFetch(send, url, init),
    });
    return { transport, kill: () => {}, lastWords: () => "" };
  }
  const { StdioClientTransport } = await import("@modelcontextprotocol/sdk/client/stdio.js");
  const wanted = Object.fromEntries((config.env ?? []).map((each) => [each, each]));
  const transport = new StdioClientTransport({
    command: config.command ?? "",
    args: [...(config.args ?? [])],
    env: named(wanted, { env, place: `mcp.servers.${name}.env` }),
    cwd: folder,
    stderr: "pipe",
    maxBufferSize: MESSAGE_BYTES_MAX,
  });
  let tail = "";
  transport.stderr?.on("data", (chunk: Buffer) => (tail = (tail + chunk.toString("utf8")).slice(-TAIL_CHARS)));
  const kill = (): void => {
    // a program that this one started, as npx does, may live on and write; the library would read that for ever
    const { _process: child } = transport as unknown as { readonly _process?: ChildProcess };
    child?.stdout?.destroy();
    child?.kill("SIGKILL");
  };
  return { transport, kill, lastWords: () => tail.trim() };
}

/** Values of variables. Throws `bad_request` naming a variable that is not set, never a value. */
function named(
  names: Readonly<Record<string, string>>,
  { env, place }: { env: ConfigSources["env"]; place: string },
): Record<string, string> {
  const entries = Object.entries(names).map(([key, variable]): [string, string] => {
    const value = env[variable];
    if (value) return [key, value];
    throw new AppError("bad_request", `${place}: the environment variable ${variable} is not set`);
  });
  return Object.fromEntries(entries);
}

/**
 * `fetch` with a bound on the body. Refuses the endless stream of messages without a request, which no code here reads,
 * but not a stream that continues an interrupted answer.
 */
async function boundedFetch(
  send: (url: string | URL, init: RequestInit) => Promise<Response>,
  url: string | URL,
  init: RequestInit = {},
): Promise<Response> {
  if ((init.method ?? "GET") === "GET" && !new Headers(init.headers).has("last-event-id")) {
    return new Response(null, { status: 405 });
  }
  const response = await send(url, init);
  if (!response.body) return response;
  let left = MESSAGE_BYTES_MAX;
  const bound = new TransformStream<Uint8Array, Uint8Array>({
    transform(chunk, controller) {
      left -= chunk.length;
      if (left < 0) controller.error(new Error(`an answer has more than ${MESSAGE_BYTES_MAX} bytes`));
      else controller.enqueue(chunk);
    },
  });
  const { status, statusText, headers } = response;
  return new Response(response.body.pipeThrough(bound), { status, statusText, headers });
}
