/** Reads single fields of a body whose sender has proved nothing yet: JSON, or a form of either kind. */
import { ownValue } from "../../base/own-value.ts";
import type { SignedRequest } from "./scheme.ts";

type BodyRequest = Pick<SignedRequest, "rawBody" | "headers">;

/** Fields of this many characters name no time and no signature. */
const FIELD_CHARS_MAX = 1024;

const typeOf = ({ headers }: BodyRequest): string =>
  (headers["content-type"] ?? "").split(";", 1).join("").trim().toLowerCase();

export const isForm = (request: BodyRequest): boolean => typeOf(request) === "application/x-www-form-urlencoded";

/** A field that is a text or a number, by its path; undefined where there is none. The body is read once. */
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

/** Finds short texts alone: files, which may be large, are not looked at. */
function multipartReader(rawBody: Uint8Array, contentType: string): (name: string) => string | undefined {
  const boundary = /;\s*boundary=(?:"([^"]+)"|([^\s;]+))/i.exec(contentType)?.slice(1).find(Boolean);
  if (boundary === undefined) return () => undefined;
  const body = Buffer.from(rawBody.buffer, rawBody.byteOffset, rawBody.byteLength);
  return (name) => {
    const start = body.indexOf(`name="${name}"${LINE_END}`, "latin1");
    const head = start < 0 ? -1 : body.indexOf(LINE_END + LINE_END, start);
    if (head < 0) return undefined;
    const value = body.subarray(head + 4, head + 4 + FIELD_CHARS_MAX);
    const end = value.indexOf(`${LINE_END}--${boundary}`);
    return end < 0 ? undefined : value.subarray(0, end).toString();
  };
}

/** Names and values one after the other, sorted by both; equal pairs once. */
export function formContent(rawBody: Uint8Array): string {
  const pairs = [...new URLSearchParams(new TextDecoder().decode(rawBody))];
  const byText = (a: string, b: string): number => (a < b ? -1 : a > b ? 1 : 0);
  return pairs
    .toSorted(([a, x], [b, y]) => byText(a, b) || byText(x, y))
    .filter(([name, value], i, all) => name !== all[i - 1]?.[0] || value !== all[i - 1]?.[1])
    .map(([name, value]) => name + value)
    .join("");
}
