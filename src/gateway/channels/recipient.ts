/** Helpers to parse recipients. */
import { AppError } from "../../base/index.ts";

export function badRecipient(channel: string, to: string, expected: string): AppError {
  const shown = JSON.stringify(to.length > 80 ? `${to.slice(0, 80)}…` : to);
  return new AppError("bad_request", `channel '${channel}': expected ${expected}, got ${shown}`);
}

/** Strips the platform's name in front: `telegram:…`. */
export function withoutPrefix(to: string, prefixes: readonly string[]): string {
  const text = to.trim();
  const at = text.indexOf(":");
  return at > 0 && prefixes.includes(text.slice(0, at).toLowerCase()) ? text.slice(at + 1).trim() : text;
}

/** The digits of a phone number with its country code; undefined if the text is not one. */
export function phoneDigits(text: string): string | undefined {
  const bare = text.replace(/[\s().-]/g, "");
  return /^\+?[1-9]\d{6,14}$/.test(bare) ? bare.replace("+", "") : undefined;
}
