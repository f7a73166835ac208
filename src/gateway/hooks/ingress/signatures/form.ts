/**
 * A signature as data: its place in a request, its format, and the signed content. `hmac` and `public-key` take all of
 * it from the configuration; `vendors.ts` has it for named senders.
 */
import { AppError } from "../../../../base/index.ts";
import { bodyFields, formContent, isForm } from "./body-fields.ts";
import { fromBase64, fromHex, SIGNATURES_MAX, type SignedRequest } from "./scheme.ts";

/**
 * The position of a value: one of several headers, one of several fields of the body, or a part of the signature's own
 * header.
 */
export interface Place {
  readonly headers?: readonly string[];
  readonly fields?: readonly string[];
  /** The value's prefix among the parts of the signature's header. */
  readonly prefix?: string;
}

export interface SignatureForm {
  readonly signature: Place;
  /** The prefix of a signature. */
  readonly prefix: string;
  readonly encoding: "hex" | "base64" | "base64url";
  readonly keyEncoding: "text" | "hex" | "base64";
  readonly algorithm: "sha1" | "sha256" | "sha384" | "sha512";
  readonly signedContent: string;
  readonly timestamp?: Place | undefined;
  readonly timestampUnit: "s" | "ms" | "iso";
  readonly toleranceSeconds: number;
  readonly id?: Place | undefined;
  readonly publicUrl?: string | undefined;
}

export const TOLERANCE_SECONDS = 300;

export const FORM_DEFAULT: SignatureForm = {
  signature: {},
  prefix: "",
  encoding: "hex",
  keyEncoding: "text",
  algorithm: "sha256",
  signedContent: "{body}",
  timestampUnit: "s",
  toleranceSeconds: TOLERANCE_SECONDS,
};

/** A request's proof of its sender. */
export interface Proof {
  readonly signatures: readonly Uint8Array[];
  readonly timestamp?: string | undefined;
  readonly id?: string | undefined;
}

/** Undefined: no value of the request has a signature's prefix. */
export function readProof(form: SignatureForm, request: SignedRequest): Proof | undefined {
  const field = bodyFields(request);
  const { headers = [], fields = [] } = form.signature;
  const inHeaders = headers.map((name) => request.headers[name]).filter((value) => value !== undefined);
  const inBody = firstOf(fields, field);
  const values = [...inHeaders, ...(inBody === undefined ? [] : [inBody])].flatMap((value) => valuesIn(value, form));
  const timePrefix = form.timestamp?.prefix;
  const isTime = (value: string): boolean => timePrefix !== undefined && value.startsWith(timePrefix);
  const signed = values.filter((value) => value.startsWith(form.prefix) && !isTime(value));
  if (signed.length === 0) return undefined;
  const decode = form.encoding === "hex" ? fromHex : fromBase64;
  const at = ({ headers: names = [], fields: paths = [] }: Place): string | undefined =>
    firstOf(names, (name) => request.headers[name]) ?? firstOf(paths, field);
  return {
    signatures: signed
      .map((value) => decode(unquoted(value.slice(form.prefix.length))))
      .filter((signature) => signature !== undefined)
      .slice(0, SIGNATURES_MAX),
    timestamp:
      timePrefix === undefined
        ? form.timestamp && at(form.timestamp)
        : values.find(isTime) && unquoted(values.find(isTime)!.slice(timePrefix.length)),
    id: form.id && at(form.id),
  };
}

const firstOf = (names: readonly string[], read: (name: string) => string | undefined): string | undefined =>
  names.map(read).find((value) => value !== undefined && value !== "");

const unquoted = (text: string): string => text.trim().replace(/^"(.*)"$/, "$1");

/**
 * A header may hold several values, separated by a character that no prefix contains: `v1,…` are separated by blanks.
 */
function valuesIn(text: string, { prefix, timestamp }: SignatureForm): string[] {
  const taken = prefix + (timestamp?.prefix ?? "");
  const between = [...", ;"].filter((mark) => !taken.includes(mark));
  if (between.length === 0) return [text.trim()];
  return text.split(new RegExp(`[${between.join("")}]+`)).filter((value) => value !== "");
}

/** The signed content: pieces concatenated without a separator. */
export type Content = readonly (string | Uint8Array)[];

const PIECE = /(\{(?:id|timestamp|body|url|method|form)\})/;

/** Throws `unauthorized` if the URL names another body than the request has. */
export function contentOf(
  form: SignatureForm,
  request: SignedRequest,
  { timestamp = "", id = "" }: Pick<Proof, "timestamp" | "id">,
): Content {
  const values: Readonly<Record<string, () => string | Uint8Array>> = {
    "{body}": () => request.rawBody,
    "{id}": () => id,
    "{timestamp}": () => timestamp,
    "{method}": () => request.method,
    "{url}": () => signedUrl(form, request.url),
    "{form}": () => formPiece(request),
  };
  return form.signedContent.split(PIECE).map((piece) => values[piece]?.() ?? piece);
}

/**
 * Twilio's format: names and values of a form, sorted. For other bodies the content is empty, and the signed URL holds
 * the body's digest.
 */
function formPiece(request: SignedRequest): string {
  if (isForm(request)) return formContent(request.rawBody);
  const named = URL.parse(request.url)?.searchParams.get("bodySHA256")?.toLowerCase();
  if (named === Bun.CryptoHasher.hash("sha256", request.rawBody, "hex")) return "";
  throw new AppError("unauthorized", "expected the body's SHA-256 in the URL's bodySHA256");
}

/** The URL as its sender wrote it. */
function signedUrl({ publicUrl }: SignatureForm, url: string): string {
  if (publicUrl === undefined) return url;
  const [{ origin, pathname }, asked] = [new URL(publicUrl), URL.parse(url)];
  return origin + (pathname === "/" ? (asked?.pathname ?? "") : pathname) + (asked?.search ?? "");
}

/** The headers of a signature. Throws `bad_request` if the signature belongs into the body. */
export function writeProof(
  form: SignatureForm,
  signature: Buffer,
  { timestamp, id }: { readonly timestamp: string; readonly id: string },
): Record<string, string> {
  const [header] = form.signature.headers ?? [];
  if (header === undefined) {
    throw new AppError("bad_request", "the sender writes this signature into the body: it cannot be made as a header");
  }
  const time = form.timestamp?.prefix === undefined ? "" : `${form.timestamp.prefix}${timestamp},`;
  const [timeHeader] = form.timestamp?.headers ?? [];
  const [idHeader] = form.id?.headers ?? [];
  return {
    [header]: time + form.prefix + signature.toString(form.encoding),
    ...(timeHeader === undefined ? {} : { [timeHeader]: timestamp }),
    ...(idHeader === undefined ? {} : { [idHeader]: id }),
  };
}
