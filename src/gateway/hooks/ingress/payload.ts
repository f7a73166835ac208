/**
 * Parses the bytes of a body. Most senders write JSON, and some of them with another content type, so text that looks
 * like an object or a list is always tried as JSON first.
 */
import { nestsDeeper } from "../../../base/index.ts";
import { isMultipart, parseMultipart } from "./multipart.ts";
import { Refusal } from "./problems.ts";

/** Deeper than any sender nests, and shallow enough for every function that recurses over a payload. */
const DEPTH_MAX = 128;

export interface PayloadOptions {
  readonly contentType: string | null;
  /** True also accepts texts and JSON lines, for mapped paths. */
  readonly isMapped: boolean;
  /** True accepts only JSON with its content type. */
  readonly isStrict: boolean;
}

/** Like `parsePayload`, and also reads `multipart/form-data`, with name, type and size of files. Throws a `Refusal`. */
export async function readPayload(bytes: Uint8Array, options: PayloadOptions): Promise<unknown> {
  const { contentType, isStrict } = options;
  if (isStrict || !isMultipart(contentType)) return parsePayload(bytes, options);
  const isJson = bytes.length === 0 || looksLikeJson(new TextDecoder().decode(bytes.subarray(0, 64)));
  return isJson ? parsePayload(bytes, options) : fieldsOf(await parseMultipart(bytes, contentType));
}

/** An empty body is an empty object. Throws a `Refusal`. */
export function parsePayload(bytes: Uint8Array, { contentType, isMapped, isStrict }: PayloadOptions): unknown {
  const kind = kindOf(contentType);
  if (isStrict && kind !== "json" && !(contentType === null && bytes.length === 0)) {
    throw new Refusal("unsupported_media_type");
  }
  const text = decode(bytes, contentType);
  if (text.trim() === "") return {};
  if (kind === "form" && !looksLikeJson(text)) return parseForm(text);
  if (kind === "lines" && isMapped) return parseLines(text);
  if (kind === "text" && isMapped) return looksLikeJson(text) ? (tryJson(text)?.value ?? text) : text;
  return parseJson(text);
}

type Kind = "json" | "form" | "lines" | "text" | "other";

const KINDS: readonly (readonly [RegExp, Kind])[] = [
  [/^application\/json$|\+json$/, "json"],
  [/^application\/x-www-form-urlencoded$/, "form"],
  [/^application\/(x-)?(ndjson|jsonlines|jsonl|json-seq)$/, "lines"],
  [/^text\/plain$/, "text"],
];

function kindOf(contentType: string | null): Kind {
  const type = contentType?.split(";")[0]?.trim().toLowerCase() ?? "";
  return KINDS.find(([pattern]) => pattern.test(type))?.[1] ?? "other";
}

const CHARSET = /;\s*charset\s*=\s*"?([\w.:-]{1,40})/i;

/** Tries UTF-8 first, as most bodies are; else the declared encoding. Drops a byte order mark. */
function decode(bytes: Uint8Array, contentType: string | null): string {
  const declared = CHARSET.exec(contentType ?? "")?.[1]?.toLowerCase() ?? "utf-8";
  const labels = /^utf-?16/.test(declared) ? [declared] : ["utf-8", declared];
  let cause: unknown;
  for (const label of labels) {
    try {
      return new TextDecoder(label as "utf-8", { fatal: true }).decode(bytes);
    } catch (error) {
      cause = error; // the encoding is unknown, or does not fit the bytes
    }
  }
  throw new Refusal("invalid_utf8", { cause });
}

const looksLikeJson = (text: string): boolean => /^\s*[[{]/.test(text);

/** Omits the engine's message, which quotes the body. */
function parseJson(text: string): unknown {
  if (nestsDeeper(text, DEPTH_MAX)) throw new Refusal("too_deep");
  try {
    return LONG_NUMBER.test(text) ? JSON.parse(text, exactly) : JSON.parse(text);
  } catch {
    throw new Refusal("invalid_json");
  }
}

/** Digits or an exponent that may not fit a float64. */
const LONG_NUMBER = /\d{16}|\d[eE]\+?\d{3}/;

/** Keeps integers beyond 2^53, and numbers beyond the range, as text: an id must not be rounded to another. */
function exactly(_key: string, value: unknown, context?: { readonly source?: string }): unknown {
  if (typeof value !== "number" || Number.isSafeInteger(value)) return value;
  const source = context?.source ?? "";
  return !Number.isFinite(value) || /^-?\d+$/.test(source) ? source : value;
}

/** Undefined if the text is not JSON. Throws if it nests too deep. */
function tryJson(text: string): { readonly value: unknown } | undefined {
  try {
    return { value: parseJson(text) };
  } catch (error) {
    if (error instanceof Refusal && error.problem === "invalid_json") return undefined;
    throw error;
  }
}

const RECORD_SEPARATOR = "\x1e"; // precedes each line in RFC 7464

function parseLines(text: string): unknown[] {
  return text
    .split("\n")
    .map((line) => (line.startsWith(RECORD_SEPARATOR) ? line.slice(1) : line).trim())
    .filter((line) => line !== "")
    .map(parseJson);
}

const parseForm = (text: string): unknown => fieldsOf([...new URLSearchParams(text)]);

/** Fields as texts, repeated ones as lists; for senders that put everything into a field `payload`, its JSON. */
function fieldsOf(form: readonly (readonly [name: string, value: unknown])[]): unknown {
  const wrapped = form.find(([name]) => name === "payload")?.[1];
  if (typeof wrapped === "string" && looksLikeJson(wrapped)) {
    const found = tryJson(wrapped);
    if (found) return found.value;
  }
  const all = Map.groupBy(form, ([name]) => name);
  return Object.fromEntries(
    [...all].map(([name, found]) => {
      const values = found.map(([, value]) => value);
      return [name, values.length === 1 ? values[0] : values];
    }),
  );
}
