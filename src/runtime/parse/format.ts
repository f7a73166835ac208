/**
 * What a tool-call format is: a way of writing calls inside a model's text, recognised by the template that teaches it.
 */
import type { ThinkingTags } from "../../engine/index.ts";
import type { Tool } from "../runtime.ts";

type TextEvent = { readonly kind: "text"; readonly text: string };
export type CallEvent = {
  readonly kind: "toolCall";
  readonly name: string;
  readonly arguments: Record<string, unknown>;
};
/** A call that the end of the answer cut. */
export type CutCallEvent = {
  readonly kind: "cutCall";
  readonly name: string;
  /** The beginning of the arguments as JSON; complete if the model finished them, empty if it had not begun. */
  readonly arguments: string;
  /** The call as the model wrote it. */
  readonly text: string;
};
export type ParsedEvent = TextEvent | CallEvent | CutCallEvent | { readonly kind: "thinking"; readonly text: string };

/**
 * Takes a model's text piece by piece. However it is cut, the same text and the same calls come out, each as early as
 * is sure.
 */
export interface TextParser {
  push(text: string): ParsedEvent[];
  /**
   * What was held back until more text could decide it.
   * @param isCut the answer was cut here: a call without its end is a cut call
   */
  end(isCut?: boolean): ParsedEvent[];
}

/** How a call looks that a grammar forces: JSON, as near to the format's own calls as JSON is. */
export interface ForcedCall {
  /** What stands in front of the JSON object; it goes into the prompt. */
  readonly open: string;
  /** Key of the function's name. */
  readonly name: string;
  /** Key of its arguments. */
  readonly arguments: string;
}

/** Texts around the parts of an answer, for a format that marks them all. */
interface AnswerMarks {
  /** Around thinking; absent: its models do not think. */
  readonly thinking?: ThinkingTags;
  /** In front of whatever follows thinking, or another part. */
  readonly next: string;
  /** In front of the answer. */
  readonly answer: string;
}

export interface ToolFormat {
  /** Whether a prompt template shows calls in this format. */
  isIn(templateSource: string): boolean;
  /** Texts of tokens that vocabularies may hold as control tokens, and that must come out as text to be parsed. */
  readonly markup: readonly string[];
  readonly forced: ForcedCall;
  /** @param tools what the model may call: names where text alone does not tell, types of untyped values */
  makeParser(tools: readonly Tool[]): TextParser;
  /** The format marks thinking and answers too: its parser is needed without tools, and splits them. */
  readonly marks?: AnswerMarks;
}

/** Calls as most formats write them in JSON. */
export const plainForced: ForcedCall = { open: "", name: "name", arguments: "arguments" };

/** How many characters at the end of `text` may be the beginning of `tag`. */
export function heldLength(text: string, tag: string): number {
  for (let length = Math.min(tag.length - 1, text.length); length > 0; length--) {
    if (text.endsWith(tag.slice(0, length))) return length;
  }
  return 0;
}

/** How many characters at the end of `text` may be the beginning of any of these. */
export const heldLengthOf = (text: string, tags: readonly string[]): number =>
  Math.max(0, ...tags.map((tag) => heldLength(text, tag)));

/** A tag and where it stands. */
export interface Found {
  readonly at: number;
  readonly tag: string;
}

/** The first of these tags in a text, the longest where several begin there. */
export function findFirst(text: string, tags: readonly string[]): Found | undefined {
  let first: Found | undefined;
  for (const tag of tags) {
    const at = text.indexOf(tag);
    if (at < 0 || (first && (at > first.at || (at === first.at && tag.length < first.tag.length)))) continue;
    first = { at, tag };
  }
  return first;
}
