/** What a preset is: a mapping for one kind of sender, and how to tell a model what that sender says. One file each. */
import { operator, type Passage } from "../../../agent/boundary/passage.ts";
import type { MappingConfig } from "../../config.ts";
import type { View } from "../request.ts";
import type { Fields } from "./fields.ts";

export interface Preset {
  readonly mapping: Partial<MappingConfig>;
  /** How the sender signs, where the operator gives its secrets. */
  readonly scheme?: "github" | "gitlab" | "stripe" | "slack" | "sentry";
  /** Where the sender's own id of a delivery is: the first of these paths that leads to a text. */
  readonly deliveryIdAt: readonly string[];
  /**
   * Whether nobody wants an answer to this event: it repeats another one, a program caused it, or nobody has to act.
   * Asked before any template or transform, unless the operator sets `allEvents`. docs/senders.md lists these events.
   */
  leavesOut?(view: View): boolean;
  /** Undefined: there is nothing to tell. Throws `bad_request` for what this sender never sends. */
  describe(view: View): Passage | undefined;
  /** Stands in where the operator gives no `itemId`. */
  itemId?(view: View): string | undefined;
  /** The conversation that a request belongs to; absent: each has its own. */
  sessionKey?(view: View): string | undefined;
}

/** One kind of what a sender tells of. */
export interface Kind {
  /** What happened, in our words. */
  readonly about: string;
  /** What the sender says of it. */
  readonly tell: (fields: Fields) => string;
}

/** Characters that are quoted of a summarised body, and of one without a summary. */
export const BODY_CHARS_MAX = 20_000;
export const OTHER_CHARS_MAX = 6000;

/** Lines with what is known: those whose value is empty are left out. */
export const lines = (...all: readonly (string | readonly [label: string, value: string])[]): string =>
  all
    .map((line) => (typeof line === "string" ? line : line[1] === "" ? "" : `${line[0]}: ${line[1]}`))
    .filter((line) => line !== "")
    .join("\n");

/** Our sentence, then theirs as one block. */
export const summary = (about: string, text: string): Passage => [
  ...operator(text === "" ? about : `${about}\n\n`),
  ...(text === "" ? [] : [{ from: "external" as const, text }]),
];
