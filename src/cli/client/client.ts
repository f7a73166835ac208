/**
 * The command line's side of the API: JSON requests, and streams of progress or text as NDJSON. It knows the server's
 * address and nothing of how the server works.
 */
import { linesOf, messageOf } from "../../base/index.ts";

/** Longest line of a stream: far above any reply of the server, low enough to be harmless. */
const LINE_LENGTH_MAX = 64 * 1024 * 1024;

/** Bun's options of a connection that trusts one certificate. */
export interface PinnedTls {
  readonly ca: string;
  readonly allowPartialTrustChain: true;
  readonly checkServerIdentity: (host: string, cert: { readonly raw: Uint8Array }) => Error | undefined;
}

export interface ServerAddress {
  /** Without a slash at its end. */
  readonly url: string;
  readonly apiKey: string | undefined;
  /** Absent: certificates are checked against the machine's authorities. */
  readonly tls?: PinnedTls;
  /** The environment variable of the key. */
  readonly keyVariable?: "HEARTH_API_KEY" | "HEARTH_GATEWAY_TOKEN";
}

/** An error answer; `status` 0: the server did not answer. */
export class ApiError extends Error {
  override readonly name = "ApiError";
  readonly status: number;

  constructor(status: number, message: string) {
    super(message);
    this.status = status;
  }
}

export type Json = Readonly<Record<string, any>>;

export class Client {
  readonly #server: ServerAddress;

  constructor(server: ServerAddress) {
    this.#server = server;
  }

  /** Throws `ApiError`. */
  async get(path: string, signal?: AbortSignal): Promise<Json> {
    return this.#json(await this.#send("GET", path, { signal }));
  }

  /** The models in a reply. Throws `ApiError`. */
  async models(path: string): Promise<Json[]> {
    const { models } = await this.get(path);
    if (Array.isArray(models)) return models as Json[];
    throw new ApiError(200, `${this.#server.url} answers without a list of models: is it a Hearth server?`);
  }

  /** A reply in one object. Throws `ApiError`. */
  async post(path: string, body: object, signal?: AbortSignal): Promise<Json> {
    const response = await this.#send("POST", path, { body: JSON.stringify({ stream: false, ...body }), signal });
    return this.#json(response);
  }

  /** Sends a form with files. Throws `ApiError`. */
  async postForm(path: string, body: FormData, signal?: AbortSignal): Promise<Json> {
    return this.#json(await this.#send("POST", path, { body, signal }));
  }

  async #json(response: Response): Promise<Json> {
    const value = await response.json().catch(() => undefined);
    if (typeof value === "object" && value !== null) return value as Json;
    throw new ApiError(response.status, `${this.#server.url} does not answer in JSON: is it a Hearth server?`);
  }

  /** For endpoints that answer only with a status. Throws `ApiError`. */
  async call(method: "POST" | "DELETE", path: string, body: object): Promise<void> {
    await (await this.#send(method, path, { body: JSON.stringify(body) })).body?.cancel();
  }

  /** The objects of a streamed reply; an object with `error` is thrown. */
  async *stream(path: string, body: object, signal?: AbortSignal): AsyncGenerator<Json, void, void> {
    const response = await this.#send("POST", path, { body: JSON.stringify({ ...body, stream: true }), signal });
    const tooLong = (): Error => new ApiError(response.status, "the server sent a line without an end");
    const lines = this.#received(linesOf(response.body, { max: LINE_LENGTH_MAX, tooLong }), signal);
    for await (const line of lines) {
      const value = parseLine(line);
      if (value["error"]) throw new ApiError(response.status, String(value["error"]));
      yield value;
    }
  }

  /** Converts a broken connection to our error. */
  async *#received<T>(pieces: AsyncIterable<T>, signal?: AbortSignal): AsyncGenerator<T, void, void> {
    try {
      yield* pieces;
    } catch (error) {
      throw signal?.aborted || error instanceof ApiError ? error : new ApiError(0, brokenOff(this.#server.url, error));
    }
  }

  async hasBlob(digest: string): Promise<boolean> {
    try {
      await this.#send("HEAD", `/api/blobs/${digest}`);
      return true;
    } catch (error) {
      if (error instanceof ApiError && error.status === 404) return false;
      throw error;
    }
  }

  /** Throws `ApiError`. */
  async uploadBlob(digest: string, content: ReadableStream<Uint8Array>, signal?: AbortSignal): Promise<void> {
    await (await this.#send("POST", `/api/blobs/${digest}`, { body: content, signal })).body?.cancel();
  }

  async #send(
    method: string,
    path: string,
    { body, signal }: { body?: string | ReadableStream<Uint8Array> | FormData; signal?: AbortSignal | undefined } = {},
  ): Promise<Response> {
    const { url, apiKey, tls } = this.#server;
    const response = await fetch(url + path, {
      method,
      ...(body === undefined ? {} : { body }),
      ...(signal ? { signal } : {}),
      ...(apiKey ? { headers: { authorization: `Bearer ${apiKey}` } } : {}),
      ...(tls ? { tls } : {}),
      timeout: false, // a model may take minutes to load
    }).catch((error: unknown) => {
      throw signal?.aborted ? error : new ApiError(0, unreachable(url, error));
    });
    if (!response.ok) {
      const text = await errorText(response, this.#server);
      throw new ApiError(response.status, typeof body === "string" ? withNameRule(text, body) : text);
    }
    return response;
  }
}

const hasCode = (error: unknown, ...codes: string[]): boolean =>
  codes.includes((error as { code?: string }).code ?? "");

/** Without Bun's advice to programmers. */
const plainReason = (error: unknown): string => messageOf(error).replace(/\.? For more information, pass .*$/s, "");

function brokenOff(url: string, error: unknown): string {
  if (!hasCode(error, "ECONNRESET", "ConnectionClosed"))
    return `the answer of ${url} breaks off: ${plainReason(error)}`;
  return `the server at ${url} closed the connection before its answer was complete: its log may say why`;
}

function unreachable(url: string, error: unknown): string {
  if (hasCode(error, "ECONNRESET", "ConnectionClosed")) {
    const advice = "; if it speaks TLS, set HEARTH_TLS_CERTIFICATE here too, or HEARTH_HOST=https://…";
    return brokenOff(url, error) + (url.startsWith("http:") ? advice : "");
  }
  const why = hasCode(error, "ConnectionRefused", "ECONNREFUSED") ? "" : ` (${plainReason(error)})`;
  const isHere = /^(localhost|127\.|\[::1\])/.test(new URL(url).hostname);
  const next = isHere ? "start one with 'hearth serve'" : "check HEARTH_HOST, and that a server runs there";
  return `could not connect to a hearth server at ${url}${why}; ${next}`;
}

/** The `error` of a reply, or the whole reply; with advice if a key or an address was refused. */
async function errorText(
  response: Response,
  { url, apiKey, keyVariable = "HEARTH_API_KEY" }: ServerAddress,
): Promise<string> {
  if (response.status === 401) {
    return apiKey
      ? `the server refuses this key: check ${keyVariable}`
      : `this server asks for a key: set ${keyVariable}`;
  }
  const text = (await response.text().catch(() => "")).slice(0, 4096).trim();
  if (response.status === 403 && text === "") return refusedAddress(url);
  const fallback = `the server answered ${response.status}${text === "" ? "" : `: ${text}`}`;
  try {
    const { error } = JSON.parse(text);
    return typeof error === "string" ? error : (error?.message ?? fallback);
  } catch {
    return fallback;
  }
}

const NAME_RULE =
  "expected MODEL, NAMESPACE/MODEL or HOST/NAMESPACE/MODEL, maybe with :TAG, of letters, digits, '-', '_' and '.', " +
  "at most 80 in each";

/** Adds the name and the rule to the server's short error about a name. @param body the request */
function withNameRule(error: string, body: string): string {
  if (/^(source|destination|name) ".*" is invalid$/s.test(error)) return `${error}: ${NAME_RULE}`;
  if (error !== "invalid model name") return error;
  const { model, from } = JSON.parse(body) as Json; // our own text
  const name = typeof model === "string" && from === undefined ? ` '${model}'` : "";
  return `${error}${name}: ${NAME_RULE}`;
}

const refusedAddress = (url: string): string =>
  `the server refuses requests to '${new URL(url).host}' (403): use the name localhost, or let it listen ` +
  "on another address (HEARTH_HOST of the server)";

function parseLine(line: string): Json {
  try {
    return JSON.parse(line);
  } catch {
    throw new ApiError(200, `the server sent a line that is not JSON: ${line.slice(0, 120)}`);
  }
}
