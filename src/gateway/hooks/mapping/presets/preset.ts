/** A preset: a mapping for one kind of sender, and a summary of its events for the model. One file per preset. */
import { operator, type TaintedText } from "../../../agent/boundary/tainted-text.ts";
import type { MappingConfig } from "../../config.ts";
import type { View } from "../request.ts";
import { jsonText, type Fields } from "./fields.ts";

export interface Preset {
  readonly mapping: Partial<MappingConfig>;
  /** The sender's signature scheme, used if the operator configures its secrets. */
  readonly scheme?: "github" | "gitlab" | "stripe" | "slack" | "sentry";
  /** Paths of the sender's delivery id: the first that leads to a text counts. */
  readonly deliveryIdAt: readonly string[];
  /**
   * True for an event that needs no answer: it repeats another one, a program caused it, or it needs no action. Asked
   * before any template or transform, unless the operator sets `allEvents`. docs/senders.md lists these events.
   */
  leavesOut?(view: View): boolean;
  /** Undefined: there is nothing to describe. Throws `bad_request` for a payload that this sender never sends. */
  describe(view: View): TaintedText | undefined;
  /** Default of the operator's `itemId`. */
  itemId?(view: View): string | undefined;
  /** The conversation of a request; absent: each request has its own. */
  sessionKey?(view: View): string | undefined;
}

export interface Kind {
  /** The event in our words. */
  readonly about: string;
  /** The sender's details. */
  readonly tell: (fields: Fields) => string;
}

/** The kind of an event, by its name among a sender's kinds. */
export const kindIn = (kinds: Readonly<Record<string, Kind>>, name = ""): Kind | undefined =>
  Object.hasOwn(kinds, name) ? kinds[name] : undefined;

/** Maximum number of characters quoted of a summarised body, and of one without a summary. */
export const BODY_CHARS_MAX = 20_000;
export const OTHER_CHARS_MAX = 6000;

/** Lines of known values; omits a line with an empty value. */
export const lines = (...all: readonly (string | readonly [label: string, value: string])[]): string =>
  all
    .map((line) => (typeof line === "string" ? line : line[1] === "" ? "" : `${line[0]}: ${line[1]}`))
    .filter((line) => line !== "")
    .join("\n");

/**
 * A summary of an event of a known kind, or of an unknown kind of `sender`, below lines that all of its events have.
 */
export const eventSummary = (
  kind: Kind | undefined,
  { sender, head, fields, payload }: { sender: string; head: string; fields: Fields; payload: unknown },
): TaintedText =>
  summary(
    `${kind?.about ?? `Something happened on ${sender}.`} Tell what matters, and whether anyone has to act.`,
    lines(head, kind ? kind.tell(fields) : jsonText(payload, OTHER_CHARS_MAX)).slice(0, BODY_CHARS_MAX),
  );

/** Our sentence, then the sender's text as one block. */
export const summary = (about: string, text: string): TaintedText => [
  ...operator(text === "" ? about : `${about}\n\n`),
  ...(text === "" ? [] : [{ from: "external" as const, text }]),
];
