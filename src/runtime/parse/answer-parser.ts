/** One parser for a whole answer: thinking, then text with tool calls in it. */
import type { ThinkingTags } from "../../engine/index.ts";
import type { ParsedEvent, TextParser } from "./format.ts";
import { makeThinkingSplitter } from "./thinking.ts";

interface AnswerParts {
  /** Undefined: the model does not think. */
  readonly tags: ThinkingTags | undefined;
  /** Whether the prompt ends inside thinking. */
  readonly isOpen: boolean;
  /** Finds the calls in what is not thinking; undefined: there are none to find. */
  readonly calls: TextParser | undefined;
}

/** Undefined where all is text. */
export function makeAnswerParser({ tags, isOpen, calls }: AnswerParts): TextParser | undefined {
  if (!tags) return calls;
  const splitter = makeThinkingSplitter(tags, isOpen);
  return calls ? chain(splitter, calls) : splitter;
}

/** What the first finds to be text goes to the second. */
function chain(first: TextParser, second: TextParser): TextParser {
  const pass = (event: ParsedEvent): ParsedEvent[] => (event.kind === "text" ? second.push(event.text) : [event]);
  return {
    push: (text) => first.push(text).flatMap(pass),
    end: (isCut) => [...first.end().flatMap(pass), ...second.end(isCut)],
  };
}
