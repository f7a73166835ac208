/** One parser for a whole answer: thinking, then text with tool calls in it. */
import type { ThinkingTags } from "../../engine/index.ts";
import type { ParsedEvent, TextParser } from "./format.ts";
import { makeThinkingSplitter } from "./thinking.ts";

interface AnswerParts {
  /** Undefined: the model does not think. */
  readonly tags: ThinkingTags | undefined;
  /** True if the prompt ends inside thinking. */
  readonly isOpen: boolean;
  /** Finds calls in the text after thinking; undefined: the format has no calls. */
  readonly calls: TextParser | undefined;
}

/** Undefined if the whole answer is text. */
export function makeAnswerParser({ tags, isOpen, calls }: AnswerParts): TextParser | undefined {
  if (!tags) return calls;
  const splitter = makeThinkingSplitter(tags, isOpen);
  return calls ? chain(splitter, calls) : splitter;
}

/** Passes the text that the first parser finds to the second. */
function chain(first: TextParser, second: TextParser): TextParser {
  const pass = (event: ParsedEvent): ParsedEvent[] => (event.kind === "text" ? second.push(event.text) : [event]);
  return {
    push: (text) => first.push(text).flatMap(pass),
    end: (isCut) => [...first.end().flatMap(pass), ...second.end(isCut)],
  };
}
