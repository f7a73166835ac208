/**
 * Decodes base64 as Go's encoding/base64 does in JSON: standard alphabet, padding required, line breaks ignored, and an
 * error with the offset of the first bad byte.
 */
import { AppError } from "../../base/index.ts";

/** Throws `bad_request`. */
export function decodeBase64(text: string): Uint8Array {
  const fault = faultIn(text);
  if (fault >= 0) throw new AppError("bad_request", `illegal base64 data at input byte ${fault}`);
  return Buffer.from(text, "base64");
}

/** Offset of the first invalid byte, or −1: decodeQuantum in base64.go. */
function faultIn(text: string): number {
  let sextets = 0; // in the current group of four
  let i = 0;
  for (; i < text.length; i++) {
    const code = text.charCodeAt(i);
    if (code === 0x0a || code === 0x0d) continue;
    if (code === 0x3d) return paddingFault(text, { at: i, sextets });
    if (!isSextet(code)) return i;
    sextets = (sextets + 1) & 3;
  }
  return sextets === 0 ? -1 : i - sextets;
}

/** A first `=` must be the last or the last but one of its group, and the end of the text must follow the group. */
function paddingFault(text: string, { at, sextets }: { at: number; sextets: number }): number {
  if (sextets < 2) return at;
  let end = at;
  if (sextets === 2) {
    end = skipLineBreaks(text, at + 1);
    if (end === text.length) return end;
    if (text[end] !== "=") return end - 1;
  }
  const rest = skipLineBreaks(text, end + 1);
  return rest < text.length ? rest : -1;
}

function skipLineBreaks(text: string, from: number): number {
  let at = from;
  while (text[at] === "\n" || text[at] === "\r") at++;
  return at;
}

function isSextet(code: number): boolean {
  const letter = code | 0x20;
  return (letter >= 0x61 && letter <= 0x7a) || (code >= 0x30 && code <= 0x39) || code === 0x2b || code === 0x2f;
}
