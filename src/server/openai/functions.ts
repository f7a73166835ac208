/**
 * `functions` and `function_call`, the predecessors of `tools` and `tool_choice`: converted to these, with at most one
 * call in an answer.
 */
import { t, type Static } from "elysia";
import { AppError, readFields, unexpected } from "../../base/index.ts";
import { Tool } from "../schema/message.ts";

export const functionFields = {
  functions: t.Optional(t.Array(Tool.properties.function)),
  /** A word, or the name of a function. */
  function_call: t.Optional(t.Unknown()),
};
const Functions = t.Object(functionFields);

interface Body extends Static<typeof Functions> {
  readonly tools?: readonly unknown[];
  readonly tool_choice?: unknown;
  readonly parallel_tool_calls?: boolean;
}

/** True if a request uses functions, and its answer must. */
export const hasFunctions = ({ functions = [] }: Body): boolean => functions.length > 0;

/** Converts functions to tools. Throws `bad_request`, also for a request with both. */
export function withTools<T extends Body>(body: T): T {
  const { functions = [], function_call: choice, tools = [] } = body;
  if (functions.length > 0 && tools.length > 0) {
    throw new AppError("bad_request", "functions: cannot be combined with tools, which replace them");
  }
  const names = functions.map(({ name } = {}, i) => {
    if (!name) throw new AppError("bad_request", `functions[${i}].name: expected a name, got none`);
    return name;
  });
  const chosen = choiceOf(choice, names);
  if (names.length === 0) return body;
  return {
    ...body,
    tools: functions.map((each) => ({ type: "function", function: each })),
    ...(chosen === undefined ? {} : { tool_choice: chosen }),
    parallel_tool_calls: false,
  };
}

function choiceOf(choice: unknown, names: readonly string[]): unknown {
  if (choice === undefined || choice === "auto" || choice === "none") return choice;
  if (typeof choice !== "object") throw unexpected("function_call", '"auto", "none" or {"name": "…"}', choice);
  const { name } = readFields(choice, "function_call");
  if (typeof name === "string" && names.includes(name)) return { type: "function", function: { name } };
  throw unexpected("function_call.name", "the name of one of the functions", name);
}
