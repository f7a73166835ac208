/** Error texts for the user of the page. */
import type { Words } from "../words/index.ts";
import { Refused, ServerGone } from "./api.ts";

/** The server's text for a refusal; the page's own for a failed connection. */
export function reasonOf({ base }: Words, error: unknown): string {
  if (error instanceof ServerGone) return base.unreachable;
  if (error instanceof Refused) return sentence(error.message);
  return error instanceof Error ? sentence(error.message) : String(error);
}

/** The server's messages begin in lower case and end without a full stop. */
const sentence = (text: string): string => (/^[a-z][a-z]+ /.test(text) ? text[0]!.toUpperCase() + text.slice(1) : text);
