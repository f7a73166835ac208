/**
 * The tools that an agent can be allowed. None touches a disk or a network. Their results are bounded, and cleaned of
 * text that could speak as someone else, because a session holds words from outside; these stay behind the safety
 * boundary.
 */
import { AppError, messageOf } from "../../../base/index.ts";
import { external, operator, type TaintedText } from "../boundary/tainted-text.ts";
import { jsonSchemaOf } from "../../../base/schema.ts";
import type { Tool, ToolCall } from "../../../runtime/portable.ts";
import { neutralize, renderTainted } from "../boundary/index.ts";
import { currentTime } from "./current-time.ts";
import { sessionHistory } from "./session-history.ts";
import type { AgentTool, ToolContext } from "./tool.ts";

export type { AgentTool } from "./tool.ts";

export const TOOLS: Readonly<Record<string, AgentTool>> = Object.fromEntries(
  [currentTime, sessionHistory].map((tool) => [tool.name, tool]),
);

/** Maximum number of UTF-16 units of one call's result. */
export const RESULT_CHARS_MAX = 8000;

/** Throws `bad_request` naming unknown tools of our own. */
export function checkTools(names: readonly string[]): void {
  const unknown = names.filter((name) => !Object.hasOwn(TOOLS, name));
  if (unknown.length === 0) return;
  const known = Object.keys(TOOLS).join(", ");
  throw new AppError("bad_request", `tools: expected some of ${known}, got ${unknown.join(", ")}`);
}

/** The definitions of the tools of an allow-list, for the prompt. Throws `bad_request` for an unknown name. */
export function toolsFor(names: readonly string[]): readonly Tool[] {
  checkTools(names);
  return [...new Set(names)].flatMap((name) => {
    const tool = TOOLS[name];
    if (!tool) return [];
    const parameters = jsonSchemaOf(tool.schema.schema);
    return [{ type: "function", function: { name, description: tool.description, parameters } }];
  });
}

/** Makes a model's call. Never throws: an error becomes the call's result. */
export async function callTool(
  call: ToolCall,
  { allowed, context }: { allowed: readonly string[]; context: ToolContext },
): Promise<TaintedText> {
  const { name, arguments: args } = call.function;
  const tool = allowed.includes(name) && Object.hasOwn(TOOLS, name) ? TOOLS[name] : undefined;
  if (!tool) {
    return operator(`error: there is no tool '${neutralize(name.slice(0, 64))}'; there are: ${allowed.join(", ")}`);
  }
  const parsed = tool.schema.safeParse(args);
  if (!parsed.success) {
    const problems = parsed.problems.map(({ path, message }) => `${path.join(".")}: ${message}`);
    return operator(`error: ${neutralize(problems.join("\n")).slice(0, RESULT_CHARS_MAX)}`);
  }
  try {
    const result = await tool.run(parsed.data, context);
    return (tool.isOutside ? external : operator)(neutralize(cutResult(result, RESULT_CHARS_MAX)));
  } catch (error) {
    return operator(`error: ${neutralize(messageOf(error)).slice(0, RESULT_CHARS_MAX)}`);
  }
}

/**
 * A call's result in the form that the model reads.
 * @param charsMax maximum UTF-16 units, without the boundary
 */
export const renderResult = (result: TaintedText, { source, charsMax }: { source: string; charsMax: number }): string =>
  renderTainted(
    result.map((part) => ({ ...part, text: cutResult(part.text, charsMax) })),
    { isWrapped: true, source },
  );

/** Keeps the end of a result: lists have the newest part last. */
const cutResult = (result: string, charsMax: number): string =>
  result.length > charsMax ? `(cut) …${result.slice(-charsMax)}` : result;
