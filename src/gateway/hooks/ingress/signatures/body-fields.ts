/** Reads single fields of an unauthenticated body: JSON, or a form of either kind. */
import { ownValue } from "../../../../base/index.ts";
import type { SignedRequest } from "./scheme.ts";

type BodyRequest = Pick<SignedRequest, "rawBody" | "headers">;

/** A longer field is neither a time nor a signature. */
const FIELD_CHARS_MAX = 1024;

const typeOf = ({ headers }: BodyRequest): string =>
  (headers["content-type"] ?? "").split(";", 1).join("").trim().toLowerCase();

export const isForm = (request: BodyRequest): boolean => typeOf(request) === "application/x-www-form-urlencoded";

/** A text or number field by its path; undefined if absent. The body is parsed once. */
export function bodyFields(request: BodyRequest): (path: string) => string | undefined {
  let read: ((path: string) => unknown) | undefined;
  return (path) => {
    read ??= readerOf(request);
    const value = read(path);
    const text = typeof value === "string" || typeof value === "number" ? String(value) : undefined;
    return text === undefined || text.length > FIELD_CHARS_MAX ? undefined : text;
  };
}

function readerOf(request: BodyRequest): (path: string) => unknown {
  const { rawBody, headers } = request;
  if (typeOf(request) === "multipart/form-data") return multipartReader(rawBody, headers["content-type"] ?? "");
  if (isForm(request)) {
    const form = new URLSearchParams(new TextDecoder().decode(rawBody));
    return (path) => form.get(path) ?? undefined;
  }
  const body = parsed(rawBody);
  return (path) => ownValue(body, path.split("."));
}

function parsed(rawBody: Uint8Array): unknown {
  try {
    return JSON.parse(new TextDecoder("utf-8", { fatal: true }).decode(rawBody));
  } catch {
    return undefined;
  }
}

const LINE_END = "\r\n";
/** Headers of a part are shorter than this. */
const HEAD_BYTES_MAX = 4096;

/**
 * Finds only short texts, and skips files, which may be large. A name counts only in a part's headers, because a mail
 * may quote a form.
 */
function multipartReader(rawBody: Uint8Array, contentType: string): (name: string) => string | undefined {
  const boundary = /;\s*boundary=(?:"([^"]+)"|([^\s;]+))/i.exec(contentType)?.slice(1).find(Boolean);
  if (boundary === undefined) return () => undefined;
  const body = Buffer.from(rawBody.buffer, rawBody.byteOffset, rawBody.byteLength);
  const fields = new Map<string, string>();
  for (const part of partsOf(body, `--${boundary}`)) {
    const end = part.subarray(0, HEAD_BYTES_MAX).indexOf(LINE_END + LINE_END);
    const name = end < 0 ? undefined : nameIn(part.toString("utf8", 0, end));
    const value = part.subarray(end + 4);
    if (name !== undefined && value.length <= FIELD_CHARS_MAX && !fields.has(name)) fields.set(name, value.toString());
  }
  return (name) => fields.get(name);
}

/** The parts between lines of the boundary. */
function* partsOf(body: Buffer, delimiter: string): Generator<Buffer> {
  let start = body.indexOf(delimiter);
  while (start >= 0) {
    const begin = start + delimiter.length;
    const next = body.indexOf(LINE_END + delimiter, begin);
    if (next < 0) return;
    yield body.subarray(begin, next);
    start = next + LINE_END.length;
  }
}

/** The field's name in the headers of a part. */
function nameIn(head: string): string | undefined {
  const [, parameters] = /\r\ncontent-disposition:[ \t]*form-data[ \t]*(;[^\r]*)/i.exec(head) ?? [];
  return /;[ \t]*name=(?:"([^"]*)"|([^\s;"]+))/i
    .exec(parameters ?? "")
    ?.slice(1)
    .find((each) => each !== undefined);
}

/** Names and values concatenated, sorted by both; equal pairs once. */
export function formContent(rawBody: Uint8Array): string {
  const pairs = [...new URLSearchParams(new TextDecoder().decode(rawBody))];
  const byText = (a: string, b: string): number => (a < b ? -1 : a > b ? 1 : 0);
  return pairs
    .toSorted(([a, x], [b, y]) => byText(a, b) || byText(x, y))
    .filter(([name, value], i, all) => name !== all[i - 1]?.[0] || value !== all[i - 1]?.[1])
    .map(([name, value]) => name + value)
    .join("");
}
