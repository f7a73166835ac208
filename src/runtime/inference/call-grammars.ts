/**
 * The grammars of the calls that a model may open. Clients send the same tools with every request, and compiling 40 of
 * them takes up to 20 ms, so the last few results are kept.
 */
import { remembering } from "../../base/index.ts";
import type { LazyGrammar } from "../../engine/index.ts";
import { lazyGrammar, makeCallWriter, orElse } from "../parse/call-grammar.ts";
import { toolFormats, type ToolFormatName } from "../parse/index.ts";
import type { Tool } from "../requests/runtime.ts";

interface Calls {
  readonly format: ToolFormatName;
  readonly tools: readonly Tool[];
  /** An answer may have several calls. */
  readonly isParallel: boolean;
}

/** The grammars of calls to these tools, without thoughts; undefined: calls are free. */
export type CallGrammars = (calls: Calls) => LazyGrammar | undefined;

/** Larger tools, as JSON with its quotes escaped, are not kept: a hundred usual ones have 80,000 characters. */
const CHARS_MAX = 2 ** 18;

export function makeCallGrammars(): CallGrammars {
  const kept = remembering(([key]) => grammarsOf(JSON.parse(key!) as Calls), { charsMax: CHARS_MAX }); // written below
  return ({ format, tools, isParallel }) => kept([JSON.stringify({ format, tools, isParallel })]);
}

/** Without a grammar, if there are too many tools for one; calls are then unconstrained. */
function grammarsOf({ format, tools, isParallel }: Calls): LazyGrammar | undefined {
  return orElse(
    () => {
      const writer = makeCallWriter(tools, isParallel);
      return lazyGrammar(writer, toolFormats[format].grammar(writer), { once: !isParallel });
    },
    () => undefined,
  );
}
