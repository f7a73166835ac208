/**
 * Models of a remote server, over this server's own API: `models.url`, possibly a router. Every failure names that
 * server; temporary failures are `upstream` or `busy`.
 */
import { createHash } from "node:crypto";
import { AppError, type Code, linesOf, messageOf } from "../../base/index.ts";
import type { Reader } from "../../base/schema.ts";
import { formatTraceparent, type Trace } from "../../base/tracing.ts";
import { answerLine, bodyOf, eventsOf, modelList, tokenCount } from "./remote-messages.ts";
import type { ChatRequest, ChatRuntime, InferenceEvent } from "../requests/runtime.ts";

/** Lets routers send a session's requests to the server that has its prefix cached. */
const SESSION_HEADER = "x-session-id";
/** Maximum length of a line of a stream, and of a whole answer: far above any real one. */
const LENGTH_MAX = 64 * 1024 * 1024;
const ERROR_LENGTH_MAX = 4096;
/** Lifetime of the cached list of model names. */
const NAMES_MS = 5000;
const NAMES_WAIT_MS = 10_000;
/** The longest wait for new names if old ones are known: webhook senders wait meanwhile. */
const NAMES_PATIENCE_MS = 1000;
/** Default delay for a busy server without `Retry-After`. */
const RETRY_MS = 5000;
const DIGEST_SHOWN = 32;

export interface RemoteOptions {
  /** Base address: `/api` is below it. */
  readonly url: string;
  /** Sent as a bearer token. */
  readonly key: string | undefined;
  /** The server has failed after this much silence; Infinity: never. */
  readonly silenceMs: number;
  /** The longest wait for its model names; undefined: ten seconds. */
  readonly namesWaitMs?: number;
  readonly fetch: typeof fetch;
  readonly now: () => number;
}

export interface RemoteRuntime extends ChatRuntime {
  /** Display names of its models, at most some seconds old; throws if the server never answered. */
  modelNames(): Promise<readonly string[]>;
  /** Returns whether one of its models generates text, as far as the server said. */
  canChat(name: string): Promise<boolean>;
}

/** The last known state of the server. */
interface Known {
  readonly names: readonly string[];
  /** Models that do not generate text. */
  readonly mute: readonly string[];
  readonly atMs: number;
}

interface RemoteRequest {
  readonly method: "GET" | "POST";
  readonly path: string;
  readonly body?: object;
  readonly session?: string | undefined;
  readonly trace?: Trace | undefined;
  readonly signal: AbortSignal;
}

/** One request to the server; ends if the server is silent for too long, or its caller is done. */
interface Exchange {
  readonly response: Response;
  /** The body; each piece counts as a sign of life. */
  readonly body: AsyncIterable<Uint8Array>;
  [Symbol.dispose](): void;
}

export function makeRemoteRuntime(options: RemoteOptions): RemoteRuntime {
  const server = `the model server at ${options.url}`;
  const contexts = new Map<string, number>();
  let known: Known | undefined;
  let asking: Promise<readonly string[]> | undefined;
  const read = async <T>(asked: RemoteRequest, schema: Reader<T>): Promise<T> => {
    using exchange = await open(options, server, asked);
    const text = await textOf(exchange, server, LENGTH_MAX);
    return parsed(text, schema, server);
  };
  const askNames = async (): Promise<readonly string[]> => {
    const waitMs = options.namesWaitMs ?? NAMES_WAIT_MS;
    const signal = AbortSignal.timeout(waitMs);
    try {
      const { models } = await read({ method: "GET", path: "/api/tags", signal }, modelList);
      const mute = models.filter(
        ({ capabilities }) => Array.isArray(capabilities) && !capabilities.includes("completion"),
      );
      known = { names: models.map(({ name }) => name), mute: mute.map(({ name }) => name), atMs: options.now() };
      return known.names;
    } catch (error) {
      if (!signal.aborted) throw error;
      const message = `${server} did not name its models in ${waitMs / 1000} s`;
      throw new AppError("upstream", message, { cause: error, isUntried: true });
    }
  };
  return {
    async *chat(request) {
      yield* answer(options, server, request);
    },
    async countTokens(request) {
      const { signal, session, trace } = request;
      const asked = { method: "POST", path: "/api/count", body: bodyOf(request), signal, session, trace } as const;
      const { count, context_length: ctxLen } = await read(asked, tokenCount);
      if (ctxLen !== undefined) contexts.set(request.model, ctxLen);
      return count;
    },
    canChat: async (name) => known?.mute.includes(name) !== true,
    loaded: () => [...contexts].map(([name, ctxLen]) => ({ name, ctxLen })),
    async modelNames() {
      if (known && options.now() - known.atMs < NAMES_MS) return known.names;
      asking ??= askNames().finally(() => (asking = undefined));
      if (!known) return asking;
      await Promise.race([asking.catch(() => {}), Bun.sleep(NAMES_PATIENCE_MS)]);
      return known.names;
    },
  };
}

async function* answer(
  options: RemoteOptions,
  server: string,
  request: ChatRequest,
): AsyncGenerator<InferenceEvent, void, void> {
  const { signal, session, trace } = request;
  const body = { ...bodyOf(request), stream: true };
  using exchange = await open(options, server, { method: "POST", path: "/api/chat", body, signal, session, trace });
  const tooLong = (): Error => new AppError("upstream", `${server} sent a line without an end`);
  for await (const text of linesOf(exchange.body, { max: LENGTH_MAX, tooLong })) {
    const line = parsed(text, answerLine, server);
    if (line.error !== undefined) throw new AppError("upstream", `${server}: ${line.error}`);
    yield* eventsOf(line);
    if (line.done) return;
  }
  throw new AppError("upstream", `${server} ended its answer in the middle`);
}

/** Throws `cancelled` if the signal was aborted, and the server's message if it refuses. */
async function open(options: RemoteOptions, server: string, asked: RemoteRequest): Promise<Exchange> {
  const { url, key, silenceMs, fetch: ask } = options;
  const ending = new AbortController();
  let timer: ReturnType<typeof setTimeout> | undefined;
  const resetTimer = (): void => {
    clearTimeout(timer);
    if (silenceMs !== Infinity) timer = setTimeout(() => ending.abort(), silenceMs);
  };
  const explained = (error: unknown): AppError => {
    if (asked.signal.aborted) return new AppError("cancelled", "request canceled", { cause: error });
    const why = ending.signal.aborted
      ? `said nothing for ${silenceMs / 1000} s`
      : `cannot be reached: ${causeOf(error)}`;
    if (error instanceof AppError) return error;
    return new AppError("upstream", `${server} ${why}`, {
      cause: error,
      isUntried: NOT_CONNECTED.has(causeOf(error)),
    });
  };
  const close = (): void => {
    clearTimeout(timer);
    ending.abort(); // tells the server that the reader has left
  };
  resetTimer();
  try {
    const response = await ask(url + asked.path, {
      method: asked.method,
      ...(asked.body ? { body: JSON.stringify(asked.body) } : {}),
      headers: {
        ...(asked.body ? { "content-type": "application/json" } : {}),
        ...(key === undefined ? {} : { authorization: `Bearer ${key}` }),
        ...(asked.trace ? { traceparent: formatTraceparent(asked.trace) } : {}),
        ...(asked.session === undefined ? {} : { [SESSION_HEADER]: digestOf(asked.session) }),
      },
      redirect: "error", // the key is meant for this server alone
      signal: AbortSignal.any([asked.signal, ending.signal]),
      timeout: false, // a model may take minutes to load
    } as RequestInit);
    const body = readBody(response, { resetTimer, explained });
    const exchange = { response, body, [Symbol.dispose]: close };
    if (!response.ok) throw await refusal(exchange, server, asked.path);
    return exchange;
  } catch (error) {
    const failure = explained(error);
    close();
    throw failure;
  }
}

async function* readBody(
  response: Response,
  { resetTimer, explained }: { resetTimer: () => void; explained: (error: unknown) => AppError },
): AsyncGenerator<Uint8Array, void, void> {
  try {
    for await (const bytes of response.body ?? []) {
      resetTimer();
      yield bytes;
    }
  } catch (error) {
    throw explained(error);
  }
}

async function textOf({ body }: Exchange, server: string, max: number): Promise<string> {
  const decoder = new TextDecoder();
  let text = "";
  for await (const bytes of body) {
    text += decoder.decode(bytes, { stream: true });
    if (text.length > max) throw new AppError("upstream", `${server} sent an answer of more than ${max} characters`);
  }
  return text + decoder.decode();
}

function parsed<T>(text: string, schema: Reader<T>, server: string): T {
  let value: unknown;
  try {
    value = JSON.parse(text);
  } catch {
    throw new AppError("upstream", `${server} sent invalid JSON: ${text.slice(0, 120)}`);
  }
  const read = schema.safeParse(value);
  if (read.success) return read.data;
  const [problem] = read.problems;
  throw new AppError("upstream", `${server} sent ${problem?.path.join(".") ?? ""}: ${problem?.message ?? "nothing"}`);
}

/** The codes of its refusals; other statuses count as its failure. */
const CODES: Readonly<Record<number, Code>> = {
  400: "bad_request",
  401: "forbidden", // our key is wrong, not our caller's
  403: "forbidden",
  404: "not_found",
  413: "too_large",
  429: "busy",
  503: "busy",
};

/** Statuses of a server that accepts none of our requests now, of one that refuses our key, of a proxy without one. */
const TAKES_NONE: ReadonlySet<number> = new Set([401, 403, 429, 502, 503]);
/** Codes of errors before a request could be sent. */
const NOT_CONNECTED: ReadonlySet<string> = new Set([
  "ConnectionRefused",
  "FailedToOpenSocket",
  "ECONNREFUSED",
  "EHOSTUNREACH",
  "ENETUNREACH",
  "ENOTFOUND",
  "EAI_AGAIN",
]);

async function refusal(exchange: Exchange, server: string, path: string): Promise<AppError> {
  const { status, headers } = exchange.response;
  const text = await textOf(exchange, server, ERROR_LENGTH_MAX).catch(() => "");
  const said = errorIn(text);
  if (status === 404 && said === undefined) {
    return new AppError(
      "bad_request",
      `${server} has no ${path}: expected a Hearth server, or a router in front of some`,
    );
  }
  const code = CODES[status] ?? "upstream";
  const retryAfterMs = code === "busy" ? Number(headers.get("retry-after")) * 1000 || RETRY_MS : undefined;
  const why = code === "forbidden" ? `refuses the key (${status})` : `answered ${status}`;
  const message = `${server} ${why}${said === undefined ? "" : `: ${said}`}`;
  const isUntried = TAKES_NONE.has(status);
  return new AppError(code, message, retryAfterMs === undefined ? { isUntried } : { retryAfterMs, isUntried });
}

function errorIn(text: string): string | undefined {
  try {
    const { error } = JSON.parse(text);
    return typeof error === "string" ? error : undefined;
  } catch {
    return undefined;
  }
}

/** The public name of a session: a digest that is equal for equal keys and reveals nothing. */
const digestOf = (session: string): string => createHash("sha256").update(session).digest("hex").slice(0, DIGEST_SHOWN);

const causeOf = (error: unknown): string => {
  const { code } = error as { code?: unknown };
  return typeof code === "string" ? code : messageOf(error);
};
