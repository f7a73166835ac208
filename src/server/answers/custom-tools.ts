/**
 * Custom tools of the OpenAI API: the client gets free text, not JSON. The model is given a function whose one argument
 * is that text, and sees earlier calls as calls of that function.
 */
import { optional, readFields, readName, readText, type Fields } from "../../base/index.ts";
import { fieldsOfPrefix } from "../../runtime/index.ts";
import type { Tool, ToolCall } from "../../runtime/portable.ts";

const ARGUMENT = "input";

/** @param tool `name`, `description` and `format`. Throws `bad_request`. */
export function readCustomTool(tool: Fields, path: string): Tool["function"] {
  const name = readName(tool["name"], `${path}.name`);
  const said = optional(readText)(tool["description"], `${path}.description`);
  const { rule, pattern } = readFormat(tool["format"], `${path}.format`);
  const description = [said, rule].filter(Boolean).join("\n\n");
  const input = { type: "string", ...(pattern === undefined ? {} : { pattern }) };
  const parameters = { type: "object", properties: { [ARGUMENT]: input }, required: [ARGUMENT] };
  return { name, ...(description ? { description } : {}), parameters };
}

/** A regular expression constrains a required call; other grammars are only described to the model, which may err. */
function readFormat(value: unknown, path: string): { rule?: string; pattern?: string } {
  const format = optional(readFields)(value, path);
  if (format?.["type"] !== "grammar") return {};
  const at = format["grammar"] === undefined ? path : `${path}.grammar`;
  const grammar = format["grammar"] === undefined ? format : readFields(format["grammar"], at);
  const syntax = readText(grammar["syntax"], `${at}.syntax`);
  const definition = readText(grammar["definition"], `${at}.definition`);
  if (syntax === "regex") return { pattern: `^(?:${definition})$` };
  return { rule: `The ${ARGUMENT} follows this grammar (${syntax}):\n${definition}` };
}

/** The arguments of a call whose text is `input`. */
export const customArguments = (input: string): Record<string, unknown> => ({ [ARGUMENT]: input });

/** The arguments of a call as JSON; for a cut call, their beginning. */
export const argumentsText = (args: ToolCall["function"]["arguments"] | string): string =>
  typeof args === "string" ? args : JSON.stringify(args);

/** The text of a call; for a cut call, its beginning. Other arguments are returned as JSON. */
export function customInput(args: ToolCall["function"]["arguments"] | string): string {
  const fields = typeof args === "string" ? fieldsOfPrefix(args) : args;
  const input = fields?.[ARGUMENT];
  return typeof input === "string" ? input : argumentsText(args);
}
