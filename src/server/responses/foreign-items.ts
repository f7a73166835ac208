/**
 * Items of tools that the API itself has (shells, patches, searches, servers of MCP): a model is told of them as calls
 * of functions and their results. `shell_call` with its `shell_call_output` is a pair; others hold their result.
 */
import { isFields, type Fields } from "../fields.ts";
import { readArguments, toldOf, type LeftOut } from "../history.ts";

interface ForeignCall {
  readonly id: string | undefined;
  readonly name: string;
  readonly arguments: Record<string, unknown>;
  /** Undefined: it is an item of its own, or nobody knows it. */
  readonly result: string | undefined;
}

/** Calls that bring nothing a model can read. */
const UNTOLD: ReadonlySet<string> = new Set(["image_generation_call", "tool_search_call", "web_search_call"]);

const CALL = /^(\w+)_call$/;

/** Whether an item is something that the model's side said or did. */
export const isAnswer = (type: string): boolean => CALL.test(type) || ANSWERS.test(type);

const ANSWERS = /^(?:reasoning|item_reference|\w*compaction\w*)$/;

export const isForeignOutput = (type: string): boolean => type.endsWith("_call_output");

/** Undefined where the item is no call that can be told of. */
export function foreignCall(item: Fields, type: string, left: LeftOut): ForeignCall | undefined {
  const tool = CALL.exec(type)?.[1];
  if (tool === undefined || UNTOLD.has(type)) return undefined;
  const { call_id, id, name } = item;
  const result = [item["output"], item["outputs"], item["results"], item["error"]]
    .map(toldOf)
    .filter(Boolean)
    .join("\n");
  return {
    id: [call_id, id].find((each) => typeof each === "string"),
    name: typeof name === "string" && name !== "" ? name : tool,
    arguments: argumentsOf(item, left),
    result: result === "" ? undefined : result,
  };
}

/** What is about the item, not about what was called. */
const ABOUT: ReadonlySet<string> = new Set(
  "type id call_id name status output outputs results error server_label approval_request_id".split(" "),
);

function argumentsOf(item: Fields, left: LeftOut): Record<string, unknown> {
  const whole = ["arguments", "action", "operation"].map((key) => item[key]).find((value) => value !== undefined);
  if (typeof whole === "string" || isFields(whole)) return readArguments(whole, left);
  return Object.fromEntries(Object.entries(item).filter(([key, value]) => !ABOUT.has(key) && value !== null));
}
