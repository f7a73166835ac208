/**
 * A configured tool server. It is connected at its first use and, if the connection has ended, again at the next use.
 * Every request has a time limit; a server that exceeds a bound loses its connection.
 */
import type { Client } from "@modelcontextprotocol/sdk/client/index.js";
import { abortable, AppError, inTime, isObject, messageOf, ownValue, VERSION, type Fields } from "../../base/index.ts";
import type { ServerConfig } from "./config.ts";
import { type McpResult, type McpTool, readResult, readTool, TOOLS_MAX } from "./messages.ts";
import { makeTransport, type TransportParts } from "./transport.ts";

const PAGES_MAX = 32;
/** Messages that a server may send between two requests; only progress reports are legitimate ones. */
const MESSAGES_MAX = 10_000;
const MESSAGE_CHARS_MAX = 600;
/** The longest time of a timer. */
const TIMER_MS_MAX = 2 ** 31 - 1;

export interface McpAbout {
  /** The server's own name and version. */
  readonly server: string;
}

export interface McpTools {
  readonly tools: readonly McpTool[];
  /** The reasons that some tools of the server are left out, one line each. */
  readonly problems: readonly string[];
}

interface Connection {
  readonly client: Client;
  /** The reason that we ended the connection; undefined if we did not. */
  ended: string | undefined;
  /** Aborted when we end the connection. A promise of that would keep the result of every request that waits for it. */
  readonly over: AbortSignal;
  /** Messages since the last request. */
  received: number;
  readonly lastWords: () => string;
}

export class McpServer {
  readonly name: string;
  readonly transport: "stdio" | "http";
  /** The program and its arguments, or the address without its query, which may hold a key. */
  readonly target: string;
  readonly #config: ServerConfig;
  readonly #parts: TransportParts;
  #connection: Promise<Connection> | undefined;
  /** Ends the opening of the connection. */
  #opening = new AbortController();

  constructor(config: ServerConfig, parts: TransportParts) {
    this.name = parts.name;
    const { command = "", args = [], url } = config;
    this.transport = url === undefined ? "stdio" : "http";
    this.target = url?.replace(/[?#].*$/, "") ?? [command, ...args].join(" ");
    this.#config = config;
    this.#parts = parts;
  }

  /** Connects if needed. Throws `bad_request` for an unset variable, `upstream` if the server cannot be reached. */
  async about(signal?: AbortSignal): Promise<McpAbout> {
    const { client } = await this.#connect(signal);
    const { name = "", version = "" } = client.getServerVersion() ?? {};
    return { server: `${name} ${version}`.slice(0, 200) };
  }

  /** The tools that the server lists now. Throws `upstream`, or the reason of an ended connection. */
  async tools(signal?: AbortSignal): Promise<McpTools> {
    const tools = new Map<string, McpTool>();
    const problems: string[] = [];
    let cursor: string | undefined;
    for (let page = 0; page < PAGES_MAX; page++) {
      const params = cursor === undefined ? {} : { cursor };
      const answer = await this.#request({ method: "tools/list", params }, signal);
      if (!Array.isArray(answer["tools"])) throw this.#failure("its answer to tools/list has no list of tools");
      for (const each of answer["tools"]) {
        const tool = readTool(each);
        if (typeof tool === "string") problems.push(tool);
        else if (tools.has(tool.name)) problems.push(`there are two tools '${tool.name}'`);
        else tools.set(tool.name, tool);
        if (tools.size + problems.length > TOOLS_MAX) throw this.#failure(`it lists more than ${TOOLS_MAX} tools`);
      }
      const next = answer["nextCursor"];
      if (typeof next !== "string" || next === "") return { tools: [...tools.values()], problems };
      cursor = next;
    }
    throw this.#failure(`its list of tools has more than ${PAGES_MAX} pages`);
  }

  /**
   * Calls a tool once. A failure that the tool or its server reports is a result. Throws `upstream` if the call did not
   * end: untried if it was not sent, else its effect is unknown; or as `about`.
   */
  async call(name: string, args: Fields, signal?: AbortSignal): Promise<McpResult> {
    const answer = await this.#ask({ method: "tools/call", params: { name, arguments: args } }, signal);
    return "refusal" in answer ? { text: answer.refusal, isError: true } : readResult(answer.result);
  }

  /** True if turns of webhooks may use the tool without an approval. */
  isHarmless(tool: string): boolean {
    return this.#config.harmless.includes(tool);
  }

  /** The argument of the tool for an idempotency key; undefined: the tool has none. */
  keyArgument(tool: string): string | undefined {
    return ownValue(this.#config.idempotencyKeys, [tool]) as string | undefined; // the configuration was checked
  }

  /** Ends the connection, and the server's program. */
  async close(): Promise<void> {
    const connection = this.#connection;
    this.#connection = undefined;
    this.#opening.abort(new AppError("cancelled", "it was closed before it answered"));
    const open = await connection?.catch(() => undefined);
    await open?.client.close().catch(() => {}); // the program is ended in any case
  }

  async #request(request: Request, signal: AbortSignal | undefined): Promise<Fields> {
    const answer = await this.#ask(request, signal);
    if ("refusal" in answer) throw this.#failure(answer.refusal);
    return answer.result;
  }

  /** The result of a request, or the server's error. */
  async #ask(
    request: Request,
    signal: AbortSignal | undefined,
    isRepeated = false,
  ): Promise<{ readonly result: Fields } | { readonly refusal: string }> {
    const connection = await this.#connect(signal);
    const { ResultSchema } = await import("@modelcontextprotocol/sdk/types.js");
    connection.received = 0;
    const timeout = this.#config.callTimeout;
    try {
      const { client, over } = connection;
      const answering = client.request(request, ResultSchema, { timeout, ...(signal && { signal }) });
      const answer: unknown = await abortable(answering, [over]);
      if (isObject(answer)) return { result: answer };
    } catch (error) {
      signal?.throwIfAborted();
      if (isForgotten(error) && !isRepeated) {
        await this.close();
        return this.#ask(request, signal, true);
      }
      if (isRefusal(error)) return { refusal: withoutPrefix(messageOf(error)).slice(0, MESSAGE_CHARS_MAX) };
      throw this.#failure(connection.ended ?? messageOf(error), connection.lastWords());
    }
    throw this.#failure(`its answer to ${request.method} is not an object`);
  }

  async #connect(signal?: AbortSignal): Promise<Connection> {
    if (!this.#connection) {
      const forget = (): void => void (this.#connection === opening && (this.#connection = undefined));
      this.#opening = new AbortController();
      const opening = this.#open(forget, this.#opening.signal);
      opening.catch(forget);
      this.#connection = opening;
    }
    return signal ? abortable(this.#connection, [signal]) : this.#connection;
  }

  /**
   * @param forget called when the connection ends
   * @param closing ends the opening
   */
  async #open(forget: () => void, closing: AbortSignal): Promise<Connection> {
    const { Client } = await import("@modelcontextprotocol/sdk/client/index.js");
    const { transport, kill, lastWords } = await makeTransport(this.#config, this.#parts);
    const client = new Client({ name: "hearth", version: VERSION });
    const over = new AbortController();
    const connection: Connection = { client, ended: undefined, over: over.signal, received: 0, lastWords };
    const end = (reason: string): void => {
      connection.ended ??= reason;
      forget();
      over.abort();
      kill(); // a program that sends too much would not read a request to stop
      void transport.close().catch(() => {}); // the connection has its reason already
    };
    const count = (): void => {
      if (++connection.received === MESSAGES_MAX) end(`it sent ${MESSAGES_MAX} messages that no request asked for`);
    };
    transport.onmessage = count;
    transport.onerror = (error) => {
      const { code, syscall } = error as NodeJS.ErrnoException;
      if (syscall?.startsWith("spawn")) end(`cannot start '${this.#config.command}': ${code}`);
      else if (/exceeded maximum size/.test(error.message)) end("a message of it is too large");
      else count();
    };
    transport.onclose = forget;
    const { connectTimeout } = this.#config;
    const late = (): never => {
      throw new Error(`it did not answer within ${connectTimeout} ms`);
    };
    try {
      // the library's transports do not satisfy its own interface under exactOptionalPropertyTypes
      const given = transport as Parameters<Client["connect"]>[0];
      // its own time limit does not cover all messages, and its error does not say how long it waited
      const connected = client.connect(given, { timeout: TIMER_MS_MAX });
      await abortable(inTime(connected, { ms: connectTimeout, late }), [closing]);
      return connection;
    } catch (error) {
      const reason = connection.ended ?? messageOf(error);
      end(reason);
      throw this.#failure(reason, lastWords(), { isUntried: true });
    }
  }

  #failure(reason: string, lastWords = "", details: { isUntried?: boolean } = {}): AppError {
    const words = lastWords === "" ? "" : `; its last output: ${lastWords}`;
    const text = `${withoutPrefix(reason)}${words}`.slice(0, MESSAGE_CHARS_MAX);
    return new AppError("upstream", `MCP server '${this.name}': ${text}`, details);
  }
}

interface Request {
  readonly method: string;
  readonly params: Record<string, unknown>;
}

const withoutPrefix = (message: string): string => message.replace(/^MCP error -?\d+: /, "");

/** Codes that the library uses for a closed connection and a timeout. */
const UNANSWERED = [-32_000, -32_001];

/** True for an error by which the server answered a request, which then has ended. */
const isRefusal = (error: unknown): boolean =>
  isObject(error) && error["name"] === "McpError" && !UNANSWERED.includes(Number(error["code"]));

/** True for an answer that refuses our session and not the request: 404 by the standard, 400 by many servers. */
const isForgotten = (error: unknown): boolean => isObject(error) && (error["code"] === 404 || error["code"] === 400);
