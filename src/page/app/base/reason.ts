/** What went wrong, in words for the person before the page. */
import type { Words } from "../words/index.ts";
import { Refused, ServerGone } from "./api.ts";

/** The server's own words where it refused; others where it was not heard at all. */
export function reasonOf({ base }: Words, error: unknown): string {
  if (error instanceof ServerGone) return base.unreachable;
  if (error instanceof Refused) return sentence(error.message);
  return error instanceof Error ? sentence(error.message) : String(error);
}

/** Messages of the server begin small and end without a stop. */
const sentence = (text: string): string => (/^[a-z][a-z]+ /.test(text) ? text[0]!.toUpperCase() + text.slice(1) : text);
