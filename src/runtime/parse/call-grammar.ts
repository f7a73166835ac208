/**
 * Writes the grammars of calls that a model opens by itself. Each format defines its calls beside its parser; shared
 * parts are here: names, arguments in JSON, lists.
 */
import { AppError } from "../../base/index.ts";
import {
  choice,
  define,
  literal,
  makeRules,
  rulesOf,
  use,
  valueExpression,
  type LazyGrammar,
} from "../../engine/index.ts";
import type { Tool } from "../requests/runtime.ts";
import { argumentsSchema } from "./arguments-schema.ts";
import type { CallableTool, CallWriter, OpenedCall, Schema } from "./call-writer.ts";

export function makeCallWriter(tools: readonly Tool[], isParallel: boolean): CallWriter {
  const rules = makeRules();
  const known = new Map<string, string>();
  const callable = new Map(tools.map((tool) => [tool.function.name, callableTool(tool)]));
  callable.delete("");
  const ws = use(rules, "ws");
  const value = (schema: Schema, { schema: root }: CallableTool): string =>
    orElse(
      () => define(rules, valueExpression(rules, schema, root)),
      () => use(rules, "any"),
    );
  const args = (tool: CallableTool): string => {
    const made =
      known.get(tool.name) ??
      orElse(
        () => define(rules, valueExpression(rules, tool.schema)),
        () => use(rules, "object"),
      );
    known.set(tool.name, made);
    return made;
  };
  const writer: CallWriter = {
    rules,
    ws,
    tools: [...callable.values()],
    text: literal,
    define: (expression) => define(rules, expression),
    perTool: (write) => define(rules, choice(writer.tools.map((tool) => define(rules, write(tool))))),
    many: (one, separator = "") => (isParallel ? `${one} (${separator} ${one})*` : one),
    json: ({ name = "name", arguments: keys = ["arguments"], lead = "" } = {}) => {
      const key = choice(keys.map((each) => literal(JSON.stringify(each))));
      const before = `"{" ${ws} ${lead} ${literal(JSON.stringify(name))} ":" ${ws}`;
      return writer.perTool(
        (tool) =>
          `${before} ${literal(JSON.stringify(tool.name))} ${ws} "," ${ws} ${key} ":" ${ws} ${args(tool)} ${ws} "}"`,
      );
    },
    args,
    value,
    upTo: (text) =>
      define(rules, `TagDispatch(stop_eos=false, stop_str=(${literal(text)}), loop_after_dispatch=false)`),
  };
  return writer;
}

/** A schema that cannot be used leaves the arguments free: the model may do without the tool. */
function callableTool({ function: { name, parameters } }: Tool): CallableTool {
  return {
    name,
    schema: orElse(
      () => argumentsSchema(name, parameters),
      () => ({ type: "object" }),
    ),
  };
}

/** The result, or another one where something cannot be used. */
export function orElse<T>(make: () => T, otherwise: () => T): T {
  try {
    return make();
  } catch (error) {
    if (!(error instanceof AppError)) throw error;
    return otherwise();
  }
}

/** A list in brackets, of one or several. */
export const listOf = (w: CallWriter, one: string): string =>
  `"[" ${w.ws} ${w.many(one, `${w.ws} "," ${w.ws}`)} ${w.ws} "]"`;

/** Parts in their order, with a separator between any two that are present. */
export function inOrder(
  w: CallWriter,
  parts: readonly { readonly expression: string; readonly isRequired: boolean }[],
  separator: string,
): string {
  let rest = ""; // the text after a part
  let all = '""';
  for (const { expression, isRequired } of parts.toReversed()) {
    const part = w.define(expression);
    const tail = rest === "" ? "" : w.define(rest);
    all = isRequired ? `${part} ${tail}` : `(${part} ${tail} | ${w.define(all)})`;
    rest = isRequired ? `${separator} ${part} ${tail}` : `(${separator} ${part})? ${tail}`;
  }
  return all;
}

/** The grammars of a format's calls, and the texts that open them. */
export function lazyGrammar(
  w: CallWriter,
  calls: readonly OpenedCall[],
  { once }: Pick<LazyGrammar, "once">,
): LazyGrammar | undefined {
  if (calls.length === 0 || w.tools.length === 0) return undefined;
  return {
    grammars: calls.map(({ rest, end }) => ({
      rules: rulesOf(w.rules, "call", rest),
      ...(end === undefined ? {} : { end }),
    })),
    triggers: calls.flatMap(({ opens, atStart }, grammar) =>
      opens.map((text) => ({ text, grammar, ...(atStart ? { atStart } : {}) })),
    ),
    once,
  };
}
