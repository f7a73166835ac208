/** Audits how a mapping's senders authenticate. */
import type { HooksConfig, SignatureConfig } from "../hooks/config.ts";
import { secretsOf } from "../hooks/secrets.ts";
import type { AtMapping, Report } from "./report.ts";

/** Bytes of a key; the minimum of hook tokens. */
const KEY_BYTES_MIN = 24;

export function auditSecrets(hooks: HooksConfig, report: Report): void {
  for (const { path, verdict } of secretsOf(hooks)) {
    if (!verdict.ok || verdict.keyBytes === undefined || verdict.keyBytes >= KEY_BYTES_MIN) continue;
    const message = `a key of ${verdict.keyBytes} bytes, fewer than ${KEY_BYTES_MIN}: it can be guessed`;
    report("warn", "secret-short", { path, message });
  }
}

type SignatureForm = Extract<SignatureConfig, { scheme: "hmac" | "public-key" }>;

/** The settings that name a value's place; undefined: no place is set. */
const placeOf = (auth: SignatureForm, name: "timestamp" | "id") =>
  (name === "id" ? (["idHeader", "idField"] as const) : TIMESTAMP_PLACES).find((key) => auth[key] !== undefined);
const TIMESTAMP_PLACES = ["timestampHeader", "timestampPrefix", "timestampField"] as const;

export function auditSignature(
  { auth, dedupeBody }: { auth: SignatureConfig; dedupeBody?: boolean | undefined },
  { path, report }: Omit<AtMapping, "parts">,
): void {
  if (auth.scheme !== "hmac" && auth.scheme !== "public-key") return;
  auditForm(auth, { path: [...path, "auth"], report });
  if (dedupeBody) return;
  const { signedContent } = auth;
  const [time, id] = [placeOf(auth, "timestamp"), placeOf(auth, "id")];
  /** A field of the body is signed with the body. */
  const isSigned = (key: string, name: string): boolean =>
    signedContent.includes(`{${name}}`) || (key.endsWith("Field") && signedContent.includes("{body}"));
  if (time !== undefined && !isSigned(time, "timestamp")) {
    const message =
      "not signed: signedContent has no {timestamp}, so a replay with a fresh one counts; or set dedupeBody";
    report("warn", "timestamp-unsigned", { path: [...path, "auth", time], message });
  }
  if (id !== undefined && !isSigned(id, "id")) {
    const message = "not signed: signedContent has no {id}, so a replay under another one counts; or set dedupeBody";
    report("warn", "id-unsigned", { path: [...path, "auth", id], message });
  }
  if (time === undefined && id === undefined) {
    const message = "neither an id nor a time is signed: every replay counts, unless dedupeBody is set";
    report("info", "replayable", { path: [...path, "auth"], message });
  }
}

/** Values of the request with these names are signed; other names in braces are literal text. */
const SIGNED = ["id", "timestamp", "body", "url", "method", "form"];
/** RFC 9110, `token`. */
const HEADER_NAME = /^[\w!#$%&'*+.^`|~-]+$/;

function auditForm(auth: SignatureForm, { path, report }: Omit<AtMapping, "parts">): void {
  const { signedContent } = auth;
  const strange = [...signedContent.matchAll(/\{(\w+)\}/g)].find(([, name]) => !SIGNED.includes(name!))?.[0];
  const at = [...path, "signedContent"];
  if (strange !== undefined) {
    const names = SIGNED.map((name) => `{${name}}`).join(", ");
    report("warn", "signed-unknown", { path: at, message: `${strange} is unknown; known: ${names}` });
  }
  for (const name of ["timestamp", "id"] as const) {
    if (!signedContent.includes(`{${name}}`) || placeOf(auth, name) !== undefined) continue;
    const message = `has {${name}}, and no setting says where it is, such as ${name}Header: it counts as empty`;
    report("warn", "signed-nowhere", { path: at, message });
  }
  if (!signedContent.includes("{body}") && !signedContent.includes("{form}")) {
    const once = signedContent.includes("{id}") && placeOf(auth, "id") !== undefined;
    const message = once
      ? "has no {body}: an attacker who intercepts a delivery can change its body"
      : "has no {body}: an attacker who has seen one signature can send any body with it";
    report(once ? "warn" : "error", "body-unsigned", { path: at, message });
  }
  for (const key of ["header", "timestampHeader", "idHeader"] as const) {
    const names = [auth[key] ?? []].flat();
    if (names.every((name) => HEADER_NAME.test(name))) continue;
    const message = "no header has this name: every request of this mapping is refused";
    report("error", "header-impossible", { path: [...path, key], message });
  }
}
