/** What an operator should know of how a mapping's senders prove themselves. */
import type { HooksConfig, SignatureConfig } from "../hooks/config.ts";
import { secretsOf } from "../hooks/secrets.ts";
import type { AtMapping, Report } from "./report.ts";

/** Bytes of a key, as the least that hook tokens have. */
const KEY_BYTES_MIN = 24;

export function auditSecrets(hooks: HooksConfig, report: Report): void {
  for (const { path, verdict } of secretsOf(hooks)) {
    if (!verdict.ok || verdict.keyBytes === undefined || verdict.keyBytes >= KEY_BYTES_MIN) continue;
    const message = `a key of ${verdict.keyBytes} bytes, fewer than ${KEY_BYTES_MIN}: it can be guessed`;
    report("warn", "secret-short", { path, message });
  }
}

export function auditSignature(
  { auth, dedupeBody }: { auth: SignatureConfig; dedupeBody?: boolean | undefined },
  { path, report }: Omit<AtMapping, "parts">,
): void {
  if (auth.scheme !== "hmac") return;
  auditForm(auth, { path: [...path, "auth"], report });
  if (dedupeBody) return;
  const { timestampHeader, idHeader, signedContent } = auth;
  if (timestampHeader !== undefined && !signedContent.includes("{timestamp}")) {
    const message =
      "not signed: signedContent has no {timestamp}, so a replay with a fresh one counts; or set dedupeBody";
    report("warn", "timestamp-unsigned", { path: [...path, "auth", "timestampHeader"], message });
  }
  if (idHeader !== undefined && !signedContent.includes("{id}")) {
    const message = "not signed: signedContent has no {id}, so a replay under another one counts; or set dedupeBody";
    report("warn", "id-unsigned", { path: [...path, "auth", "idHeader"], message });
  }
  if (timestampHeader === undefined && idHeader === undefined) {
    const message = "neither an id nor a time is signed: every replay counts, unless dedupeBody is set";
    report("info", "replayable", { path: [...path, "auth"], message });
  }
}

/** What is signed by these names is the request's; anything else in braces is text. */
const SIGNED = ["id", "timestamp", "body", "url", "method"];
/** RFC 9110, `token`. */
const HEADER_NAME = /^[\w!#$%&'*+.^`|~-]+$/;

function auditForm(auth: Extract<SignatureConfig, { scheme: "hmac" }>, { path, report }: Omit<AtMapping, "parts">) {
  const { signedContent } = auth;
  const strange = [...signedContent.matchAll(/\{(\w+)\}/g)].find(([, name]) => !SIGNED.includes(name!))?.[0];
  const at = [...path, "signedContent"];
  if (strange !== undefined) {
    const names = SIGNED.map((name) => `{${name}}`).join(", ");
    report("warn", "signed-unknown", { path: at, message: `${strange} stands for nothing; known: ${names}` });
  }
  if (!signedContent.includes("{body}")) {
    const message = "has no {body}: whoever has seen one signature can send any body with it";
    report("error", "body-unsigned", { path: at, message });
  }
  for (const key of ["header", "timestampHeader", "idHeader"] as const) {
    if (HEADER_NAME.test(auth[key] ?? "absent")) continue;
    const message = "no header has this name: every request of this mapping is refused";
    report("error", "header-impossible", { path: [...path, key], message });
  }
}
