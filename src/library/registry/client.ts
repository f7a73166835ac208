/**
 * HTTP to one registry: the token flow, redirects without the token, and failures sorted into temporary and permanent
 * ones. It contacts only the host in the model's name and that host's redirect targets.
 */
import { gunzipSync } from "node:zlib";
import { AppError, parseRetryAfter } from "../../base/index.ts";
import type { Address } from "./address.ts";
import { wantsLogin, parseChallenge, parseToken, tokenRequest } from "./auth.ts";
import type { RegistryKey } from "./key.ts";
import { makeReach, type Lookup } from "./reach.ts";
import { retry, Transient, type Limits } from "./retry.ts";
import { StallWatch } from "./stall-watch.ts";

const REDIRECTS_MAX = 10;
const ERROR_BYTES_MAX = 4096;
const TOKEN_BYTES_MAX = 64 * 1024;
const RETRY_AFTER_MS_MAX = 60_000;

interface ClientParts {
  readonly address: Address;
  readonly readKey: () => Promise<RegistryKey>;
  /** `user:password` for the registry. */
  readonly login?: string | undefined;
  readonly userAgent: string;
  readonly limits: Limits;
  readonly signal: AbortSignal;
  /** Absent: the system's. */
  readonly lookup?: Lookup | undefined;
}

interface RegistryRequest {
  readonly method: "GET" | "HEAD" | "POST" | "PATCH" | "PUT";
  readonly url: URL;
  readonly headers?: Readonly<Record<string, string>>;
  /** Called for every try. */
  readonly body?: () => ReadableStream<Uint8Array> | Uint8Array<ArrayBuffer>;
}

export interface RegistryClient {
  readonly address: Address;
  readonly limits: Limits;
  /** Aborted when the last caller has left. */
  readonly signal: AbortSignal;
  /** One exchange; returns any status except 401. Throws `Transient`, `registry` and `cancelled`. */
  send(request: RegistryRequest, watch: StallWatch): Promise<Response>;
  /** Follows redirects of GET or HEAD; `url` is the final one. */
  follow(request: RegistryRequest, watch: StallWatch): Promise<{ response: Response; url: URL }>;
  /** As `send`, but retried, and with the whole answer in memory. Throws unless the status is 2xx. */
  exchange(request: RegistryRequest, options: ExchangeOptions): Promise<Answer>;
}

interface ExchangeOptions {
  /** The beginning of a failure's message. */
  readonly what: string;
  readonly bytesMax: number;
  /** Messages for statuses with a special meaning. */
  readonly messages?: Readonly<Record<number, string>>;
}

export interface Answer {
  readonly status: number;
  readonly headers: Headers;
  readonly body: Uint8Array;
  /** The host of the answer, if not the registry. */
  readonly elsewhere: string | undefined;
}

export function makeClient(parts: ClientParts): RegistryClient {
  const { address, limits, signal } = parts;
  const tokens = makeTokens(parts);
  const checkReach = makeReach(address.base, parts.lookup);
  const send: RegistryClient["send"] = async (request, watch) => {
    const ours = request.url.origin === address.base.origin; // the token is for the registry alone
    await checkReach(request.url, watch.signal);
    const used = ours ? tokens.current() : undefined;
    const response = await rawSend(request, { parts, watch, authorization: used });
    if (response.status !== 401 || !ours) return response;
    await discard(response);
    const renewed = await tokens.renew({ used, challenge: response.headers.get("www-authenticate"), watch });
    const again = await rawSend(request, { parts, watch, authorization: renewed });
    if (again.status !== 401) return again;
    await discard(again);
    throw new AppError("registry", `unauthorized: access denied${parts.login ? " with models.sourceLogin" : ""}`);
  };
  const follow: RegistryClient["follow"] = async (request, watch) => {
    let url = request.url;
    for (let hop = 0; hop <= REDIRECTS_MAX; hop++) {
      const response = await send({ ...request, url }, watch);
      if (!isRedirect(response.status)) return { response, url };
      await discard(response);
      url = locationOf(response.headers, { from: url, address });
    }
    throw new AppError("registry", `${address.base.host}: expected at most ${REDIRECTS_MAX} redirects`);
  };
  const exchange: RegistryClient["exchange"] = (request, { what, bytesMax, messages = {} }) =>
    retry(
      async () => {
        using watch = new StallWatch({ stallMs: limits.stallMs, wanted: signal });
        const { response, url } =
          request.method === "GET" || request.method === "HEAD"
            ? await follow(request, watch)
            : { response: await send(request, watch), url: request.url };
        const message = messages[response.status];
        if (message !== undefined) throw new AppError("registry", message, { cause: response.status });
        if (!response.ok) throw await failureOf(response, { what, watch, address });
        const body = await readBody(response, { bytesMax, watch, host: url.host });
        const elsewhere = isElsewhere(response, address) ? url.host : undefined;
        return { status: response.status, headers: response.headers, body, elsewhere };
      },
      { limits: { ...limits, tries: Math.min(limits.tries, 3) }, signal }, // a caller waits for the answer
    );
  return { address, limits, signal, send, follow, exchange };
}

interface SendOptions {
  readonly parts: Pick<ClientParts, "userAgent" | "address">;
  readonly watch: StallWatch;
  readonly authorization: string | undefined;
}

async function rawSend({ method, url, headers, body }: RegistryRequest, options: SendOptions): Promise<Response> {
  const { parts, watch, authorization } = options;
  try {
    const response = await fetch(url, {
      method,
      headers: {
        "user-agent": parts.userAgent,
        "accept-encoding": "identity", // offsets and sizes refer to uncompressed content
        ...(authorization ? { authorization } : {}),
        ...headers,
      },
      redirect: "manual",
      signal: watch.signal,
      ...(body ? { body: body() } : {}),
      ...(parts.address.insecure ? { tls: { rejectUnauthorized: false } } : {}),
      decompress: false,
    });
    watch.moved();
    return response;
  } catch (error) {
    throw watch.translate(error, url.host);
  }
}

/** The current authorization. Requests that find it expired at the same time share one renewal. */
function makeTokens(parts: ClientParts) {
  const { base } = parts.address;
  const basic = parts.login && `Basic ${Buffer.from(parts.login).toString("base64")}`;
  let token: string | undefined;
  let renewal: Promise<string> | undefined;
  const request = async (header: string | null, watch: StallWatch): Promise<string> => {
    if (wantsLogin(header)) {
      if (basic) return (token = basic);
      const where = "'models.sourceLogin' where it is 'models.source'";
      throw new AppError("registry", `unauthorized: ${base.host} requires a user and a password: ${where}`);
    }
    const challenge = parseChallenge(header, base);
    const { url, authorization } = tokenRequest(challenge, { key: await parts.readKey(), nowMs: Date.now() });
    const response = await rawSend({ method: "GET", url }, { parts, watch, authorization: basic ?? authorization });
    if (isTransient(response.status)) {
      throw await failureOf(response, { what: `token from ${base.host}`, watch, address: parts.address });
    }
    if (!response.ok) {
      await discard(response);
      throw new AppError("registry", `unauthorized: access denied${parts.login ? " with models.sourceLogin" : ""}`);
    }
    const body = await readBody(response, { bytesMax: TOKEN_BYTES_MAX, watch, host: base.host });
    return (token = `Bearer ${parseToken(new TextDecoder().decode(body), base.host)}`);
  };
  return {
    current: () => token,
    /** @param at.used the refused token */
    async renew(at: { used: string | undefined; challenge: string | null; watch: StallWatch }): Promise<string> {
      if (token !== undefined && token !== at.used) return token;
      renewal ??= request(at.challenge, at.watch).finally(() => void (renewal = undefined));
      return renewal;
    },
  };
}

export const isRedirect = (status: number): boolean => [301, 302, 303, 307, 308].includes(status);

const isTransient = (status: number): boolean => status >= 500 || [408, 425, 429].includes(status);

/** The redirect target. Throws `registry` if it leaves https without permission. */
export function locationOf(
  headers: Headers,
  { from, address, header = "location" }: { from: URL; address: Address; header?: string },
): URL {
  const text = headers.get(header);
  const url = text === null ? null : URL.parse(text, from.href);
  if (!url || !/^https?:$/.test(url.protocol)) {
    throw new AppError("registry", `${from.host}: expected a ${header} to go to, got ${JSON.stringify(text)}`);
  }
  if (url.protocol === "http:" && from.protocol === "https:" && !address.insecure) {
    throw new AppError("registry", `${from.host}: insecure protocol http in a redirect to ${url.host}`);
  }
  return url;
}

/** Returns whether an answer came from another server than the registry: callers must not read its text. */
export const isElsewhere = ({ url }: Response, { base }: Address): boolean => new URL(url).origin !== base.origin;

/** The failure for a status, quoting the registry but not other servers. Reads a few kilobytes of the body at most. */
export async function failureOf(
  response: Response,
  { what, watch, address }: { what: string; watch: StallWatch; address: Address },
): Promise<Error> {
  const said = isElsewhere(response, address)
    ? `the answer of ${new URL(response.url).host}, to which ${address.base.host} sent us`
    : saidIn(await readStart(response, watch)) || response.statusText || "no reason given";
  const message = `${what}: ${response.status}: ${said}`;
  if (!isTransient(response.status)) return new AppError("registry", message);
  const afterMs = parseRetryAfter(response.headers.get("retry-after")) ?? 0;
  return new Transient(message, { afterMs: Math.min(afterMs, RETRY_AFTER_MS_MAX) });
}

/** The message in a registry's error body, or the whole text. */
function saidIn(text: string): string {
  try {
    const { errors, error } = JSON.parse(text) as { errors?: { message?: unknown }[]; error?: unknown }; // or throws
    const said = error ?? errors?.[0]?.message;
    if (typeof said === "string") return plain(said);
  } catch {
    // not JSON, or of another shape
  }
  return plain(text).slice(0, 500);
}

/** Puts a text on one line, without control characters for terminals. */
const plain = (text: string): string => text.replace(/[\s\p{Cc}\p{Cf}]+/gu, " ").trim();

async function readStart(response: Response, watch: StallWatch): Promise<string> {
  try {
    const body = await readBody(response, { bytesMax: ERROR_BYTES_MAX, watch, host: "" });
    return new TextDecoder().decode(body);
  } catch {
    return ""; // the status is enough
  }
}

/** Throws `registry` beyond `bytesMax`, `Transient` where the connection breaks. */
async function readBody(
  response: Response,
  { bytesMax, watch, host }: { bytesMax: number; watch: StallWatch; host: string },
): Promise<Uint8Array> {
  const chunks: Uint8Array[] = [];
  let length = 0;
  try {
    for await (const chunk of response.body ?? []) {
      watch.moved();
      length += chunk.length;
      if (length > bytesMax) throw new AppError("registry", `${host}: expected at most ${bytesMax} bytes in an answer`);
      chunks.push(chunk);
    }
  } catch (error) {
    throw watch.translate(error, host);
  }
  return decoded(Buffer.concat(chunks), { encoding: response.headers.get("content-encoding"), bytesMax, host });
}

/** Decompresses bodies that some proxies compress unasked. Throws `registry` beyond `bytesMax` and for invalid gzip. */
function decoded(
  bytes: Uint8Array,
  { encoding, bytesMax, host }: { encoding: string | null; bytesMax: number; host: string },
): Uint8Array {
  if (encoding !== "gzip" || bytes.length === 0) return bytes;
  try {
    return gunzipSync(bytes, { maxOutputLength: bytesMax });
  } catch (error) {
    const expected = `${host}: expected an answer in gzip of at most ${bytesMax} bytes`;
    throw new AppError("registry", expected, { cause: error });
  }
}

async function discard(response: Response): Promise<void> {
  await response.body?.cancel().catch(() => {}); // the connection may be broken already
}
