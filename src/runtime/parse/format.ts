/** Tool-call formats: how a model writes calls in its text. A format is recognised by the template that teaches it. */
import type { ThinkingTags } from "../../engine/index.ts";
import type { Tool } from "../requests/runtime.ts";
import type { CallWriter, OpenedCall } from "./call-writer.ts";

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
  /** The beginning of the arguments as JSON: complete if the model finished them, empty if it had not begun. */
  readonly arguments: string;
  /** The call as the model wrote it. */
  readonly text: string;
};
export type ParsedEvent = TextEvent | CallEvent | CutCallEvent | { readonly kind: "thinking"; readonly text: string };

/** Reads a model's text in pieces. Any division yields the same text and calls, each as early as it is certain. */
export interface TextParser {
  push(text: string): ParsedEvent[];
  /**
   * Returns the text that was held back until it was decidable.
   * @param isCut the answer was cut here: a call without its end is a cut call
   */
  end(isCut?: boolean): ParsedEvent[];
}

/** The form of a grammar-forced call: JSON, as close as possible to the format's own calls. */
export interface ForcedCall {
  /** Text before the JSON object, which is added to the prompt. */
  readonly open: string;
  /** Key of the function's name. */
  readonly name: string;
  /** Key of its arguments. */
  readonly arguments: string;
}

/** Marks around the parts of an answer, for a format that marks them all. */
interface AnswerMarks {
  /** Around thinking; absent: its models do not think. */
  readonly thinking?: ThinkingTags;
  /** Text before the part that follows thinking, or before any other part. */
  readonly next: string;
  /** Before the answer. */
  readonly answer: string;
}

export interface ToolFormat {
  /** Returns whether a prompt template shows calls in this format. */
  isIn(templateSource: string): boolean;
  /** Texts that may be control tokens in a vocabulary, and that must be decoded as text for the parser. */
  readonly markup: readonly string[];
  readonly forced: ForcedCall;
  /** Calls that a model opens by itself, as `makeParser` reads them. */
  grammar(writer: CallWriter): readonly OpenedCall[];
  /**
   * @param tools tools that the model may call: their names where the text is ambiguous, and the types of untyped
   * values
   * @param promptEnd the end of the prompt, for a format that marks all parts of an answer: it may open the first one
   */
  makeParser(tools: readonly Tool[], promptEnd?: string): TextParser;
  /** The format marks thinking and answers too: its parser splits them, and is needed even without tools. */
  readonly marks?: AnswerMarks;
}

/** Calls as most formats write them in JSON. */
export const plainForced: ForcedCall = { open: "", name: "name", arguments: "arguments" };

/** The number of characters at the end of `text` that may begin `tag`. */
export function heldLength(text: string, tag: string): number {
  for (let length = Math.min(tag.length - 1, text.length); length > 0; length--) {
    if (text.endsWith(tag.slice(0, length))) return length;
  }
  return 0;
}

/** The number of characters at the end of `text` that may begin any of these tags. */
export const heldLengthOf = (text: string, tags: readonly string[]): number =>
  Math.max(0, ...tags.map((tag) => heldLength(text, tag)));

/** A tag and where it stands. */
export interface Found {
  readonly at: number;
  readonly tag: string;
}

/** The first of these tags in a text; the longest if several begin there. */
export function findFirst(text: string, tags: readonly string[]): Found | undefined {
  let first: Found | undefined;
  for (const tag of tags) {
    const at = text.indexOf(tag);
    if (at < 0 || (first && (at > first.at || (at === first.at && tag.length < first.tag.length)))) continue;
    first = { at, tag };
  }
  return first;
}
