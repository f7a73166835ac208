/** A required tool call: its JSON schema, one of the tools with arguments that fit its parameters, and its reading. */
import { AppError, isObject } from "../../base/index.ts";
import { DATA, MAPS } from "../../engine/index.ts";
import { argumentsSchema } from "../parse/arguments-schema.ts";
import { cutCallsIn } from "../parse/cut-calls.ts";
import type { ForcedCall, ParsedEvent } from "../parse/format.ts";
import { callsInJson } from "../parse/json-calls.ts";
import type { Tool, ToolChoice } from "../requests/runtime.ts";

interface Choice {
  readonly tools?: readonly Tool[] | undefined;
  readonly toolChoice?: ToolChoice | undefined;
}

/** The tools of which one must be called; undefined: the model is free to choose. Throws `bad_request`. */
export function requiredTools({ tools = [], toolChoice = "auto" }: Choice): readonly Tool[] | undefined {
  if (toolChoice === "auto" || toolChoice === "none") return undefined;
  if (tools.length === 0) throw new AppError("bad_request", "tool_choice: expected tools to choose from, got none");
  if (toolChoice === "required") return tools;
  const named = tools.filter((tool) => tool.function.name === toolChoice.name);
  if (named.length > 0) return named;
  const names = tools.map((tool) => `'${tool.function.name}'`).join(", ");
  throw new AppError("bad_request", `tool_choice: expected one of the tools ${names}, got '${toolChoice.name}'`);
}

/** The schema of one call to one of these tools, under the keys of a format. Throws `bad_request`. */
export function forcedCallSchema(tools: readonly Tool[], keys: ForcedCall): Record<string, unknown> {
  const byName = new Map(tools.map((tool) => [tool.function.name, tool.function.parameters]));
  if (byName.has("")) throw new AppError("bad_request", "tools: expected a name for every tool");
  const calls = Array.from(byName.keys(), (name) => ({
    type: "object",
    properties: { [keys.name]: { const: name }, [keys.arguments]: { $ref: pointerTo(name) } },
    required: [keys.name, keys.arguments],
    additionalProperties: false,
  }));
  const parameters = Array.from(byName, ([name, schema]) => [
    name,
    moveRefs(argumentsSchema(name, schema), pointerTo(name)),
  ]);
  return { anyOf: calls, $defs: Object.fromEntries(parameters) };
}

/** The reference to a tool's parameters in the schema of all calls (RFC 6901 in a fragment). */
const pointerTo = (name: string): string =>
  `#/$defs/${encodeURIComponent(name.replaceAll("~", "~0").replaceAll("/", "~1"))}`;

/** Moves a schema's internal references to its new place. Its depth is limited already. */
function moveRefs(schema: unknown, base: string): unknown {
  if (Array.isArray(schema)) return schema.map((each) => moveRefs(each, base));
  if (!isObject(schema)) return schema;
  const moved = Object.entries(schema).map(([key, value]): [string, unknown] => {
    if (DATA.has(key)) return [key, value];
    if (key === "$ref" && typeof value === "string" && value.startsWith("#")) return [key, base + value.slice(1)];
    if (!MAPS.has(key) || !isObject(value)) return [key, moveRefs(value, base)];
    return [key, Object.fromEntries(Object.entries(value).map(([name, each]) => [name, moveRefs(each, base)]))];
  });
  return Object.fromEntries(moved);
}

/** Reads a required call. If the call was cut before its name and only one tool is allowed, it calls that tool. */
export function forcedCalls(text: string, required: readonly Tool[]): ParsedEvent[] {
  const calls = callsInJson(text);
  if (calls.length > 0 || text.trim() === "") return calls;
  const cut = cutCallsIn(text, { text, callsIn: callsInJson }).find(({ name }) => isOffered(name, required));
  const [only, ...more] = new Set(required.map((tool) => tool.function.name));
  if (cut) return [cut];
  if (only === undefined || more.length > 0) return [{ kind: "text", text }];
  return [{ kind: "cutCall", name: only, arguments: "", text }];
}

export const isOffered = (name: string, tools: readonly Tool[]): boolean =>
  tools.some((tool) => tool.function.name === name);

/** The schema of a forced call is made of the tools' schemas, so its errors name the tools. */
export function namingTools(error: unknown): unknown {
  const about = error instanceof AppError && /^format: (?:#\/\$defs\/)?(.*)$/s.exec(error.message)?.[1];
  return about ? new AppError("bad_request", `tools: ${about}`, { cause: error }) : error;
}
