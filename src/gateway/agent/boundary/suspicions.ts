/**
 * Patterns of outside text that tries to give orders. A match is logged by the pattern's name, never by its text, and
 * is not refused.
 */
import { fold } from "./fold.ts";

/** Each pattern takes linear time. */
const PATTERNS: Readonly<Record<string, RegExp>> = {
  "ignore previous instructions":
    /\b(ignore|disregard|forget)\b.{0,40}\b(previous|prior|above|earlier|all)\b.{0,20}\b(instructions?|rules?)\b/,
  "new role": /\byou are now (an? |the )?\w+/,
  "new instructions": /\bnew (system )?instructions?\s*:/,
  "system prompt": /\bsystem\s*(?::\s*)?(prompt|override|command)\b/,
  "command execution": /\bexec\b.{0,40}\bcommand\s*=|\brm\s+-[a-qs-z]*r[a-eg-z]*f/,
  elevation: /\belevated\s*=\s*true\b/,
  deletion: /\bdelete (all|every|the)\b.{0,20}\b(e-?mails?|files?|data|messages?)\b/,
  "role tag": /<\/?(system|assistant|user|developer)>|\[(system|assistant)( message)?\]/,
  "role line": /(^|\n)[^\S\n]*(system|assistant|developer)\s*:/,
  secrets: /\b(reveal|print|send|show)\b.{0,40}\b(system prompt|api keys?|tokens?|passwords?|secrets?)\b/,
};

/** A run of invisible characters longer than any script or flag needs. */
const INVISIBLE = /[\u{e0000}-\u{e0fff}]{8}|[\u200b-\u200f\u2060-\u2064\ufeff]{8}/u;

/** Maximum length of text that is searched; longer text is wrapped, too. */
const LENGTH_MAX = 65_536;

/** Names of the patterns that match a text. */
export function suspicions(text: string): readonly string[] {
  const folded = fold(text.slice(0, LENGTH_MAX)).text;
  const found = Object.entries(PATTERNS).filter(([, pattern]) => pattern.test(folded));
  const hidden = INVISIBLE.test(text.slice(0, LENGTH_MAX)) ? ["invisible text"] : [];
  return [...found.map(([name]) => name), ...hidden];
}
