/** What an operator should know of how a mapping's senders prove themselves. */
import type { SignatureConfig } from "../hooks/config.ts";
import type { AtMapping } from "./audit.ts";

export function auditSignature(auth: SignatureConfig, { path, report }: Omit<AtMapping, "parts">): void {
  if (auth.scheme !== "hmac") return;
  const { timestampHeader, idHeader, signedContent } = auth;
  if (timestampHeader !== undefined && !signedContent.includes("{timestamp}")) {
    const message = "not signed: signedContent has no {timestamp}, so a replay with a fresh one counts";
    report("warn", "timestamp-unsigned", { path: [...path, "auth", "timestampHeader"], message });
  }
  if (idHeader !== undefined && !signedContent.includes("{id}")) {
    const message = "not signed: signedContent has no {id}, so a replay under another one counts";
    report("warn", "id-unsigned", { path: [...path, "auth", "idHeader"], message });
  }
}
