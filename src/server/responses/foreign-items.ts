/**
 * Turns items of OpenAI's own tools (shell, patches, searches, MCP) into function calls and their results. Some items
 * come in pairs, such as `shell_call` and `shell_call_output`; others contain their result.
 */
import { isObject, type Fields } from "../../base/index.ts";
import { mcpName } from "../../runtime/mcp/names.ts";
import { resultContent } from "../answers/server-tools.ts";
import { readArguments, toolResultText, type LeftOut } from "../requests/history.ts";

interface ForeignCall {
  readonly id: string | undefined;
  readonly name: string;
  readonly arguments: Record<string, unknown>;
  /** Undefined if the result is a separate item, or absent. */
  readonly result: string | undefined;
}

/** Calls without a result that a model can read. */
const OMITTED: ReadonlySet<string> = new Set(["image_generation_call", "tool_search_call", "web_search_call"]);

const CALL = /^(\w+)_call$/;

/** True if an item belongs to the assistant. */
export const isAnswer = (type: string): boolean => CALL.test(type) || ANSWERS.test(type);

const ANSWERS = /^(?:reasoning|item_reference|\w*compaction\w*)$/;

export const isForeignOutput = (type: string): boolean => type.endsWith("_call_output");

/** Undefined if the item is not a call with readable content. */
export function foreignCall(item: Fields, type: string, left: LeftOut): ForeignCall | undefined {
  const tool = CALL.exec(type)?.[1];
  if (tool === undefined || OMITTED.has(type)) return undefined;
  const { call_id, id, name } = item;
  const result = [item["output"], item["outputs"], item["results"], item["error"]]
    .map(toolResultText)
    .filter(Boolean)
    .join("\n");
  return {
    id: [call_id, id].find((each) => typeof each === "string"),
    name: typeof name === "string" && name !== "" ? nameOf(name, item) : tool,
    arguments: argumentsOf(item, left),
    result: result === "" ? undefined : resultOf(item, result),
  };
}

/** Results of tool servers are outside text. */
const resultOf = ({ type, error }: Fields, text: string): string =>
  type === "mcp_call" ? resultContent({ text, isError: Boolean(error) }, "a tool server") : text;

/** Tools of a server, in the model's view, have the server's label in their name. */
const nameOf = (name: string, { type, server_label: label }: Fields): string =>
  type === "mcp_call" && typeof label === "string" ? mcpName(label, name) : name;

/** Keys that describe the item and are not arguments. */
const ABOUT: ReadonlySet<string> = new Set(
  "type id call_id name status output outputs results error server_label approval_request_id".split(" "),
);

function argumentsOf(item: Fields, left: LeftOut): Record<string, unknown> {
  const whole = ["arguments", "action", "operation"].map((key) => item[key]).find((value) => value !== undefined);
  if (typeof whole === "string" || isObject(whole)) return readArguments(whole, left);
  return Object.fromEntries(Object.entries(item).filter(([key, value]) => !ABOUT.has(key) && value !== null));
}
