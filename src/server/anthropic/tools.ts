/** The tools of an Anthropic request, and the choice among them. */
import { optional, readBoolean, readFields, readName, readText, unexpected, type Read } from "../../base/index.ts";
import type { Tool, ToolChoice } from "../../runtime/portable.ts";
import { isDispensable } from "../answers/provider-tools.ts";
import { type McpOffer, toolsOf } from "../answers/server-tools.ts";
import { checkStrict } from "../answers/strict-schema.ts";
import { knownName, requireTools } from "../answers/tool-choice.ts";
import { clientTool } from "./client-tools.ts";
import { isToolset } from "./mcp-servers.ts";

/**
 * Throws `bad_request`, also for tools of the provider's servers, unless the model may answer without them.
 * @param offers tools of servers, in place of the toolsets
 */
export function readTools(
  list: readonly unknown[],
  offers: readonly McpOffer[] = [],
): { tools: readonly Tool[]; left: readonly string[] } {
  const types = list.map((tool, i) => readFields(tool, `tools.${i}`)["type"]);
  const isOurs = (type: unknown): boolean => isToolset(type) || isDispensable(type);
  const own = list.flatMap((tool, i) => (isOurs(types[i]) ? [] : [readTool(tool, `tools.${i}`)]));
  const tools = [...own, ...toolsOf(offers)];
  return { tools, left: types.filter(isDispensable) };
}

const readTool: Read<Tool> = (value, path) => {
  const tool = readFields(value, path);
  const type = optional(readText)(tool["type"], `${path}.type`) ?? "custom";
  const name = readName(tool["name"], `${path}.name`);
  const known = clientTool(type);
  if (known) return { type: "function", function: { name, ...known } };
  if (type !== "custom") {
    throw unexpected(`${path}.type`, '"custom" or another tool that the client runs', type);
  }
  const description = optional(readText)(tool["description"], `${path}.description`);
  const parameters = readFields(tool["input_schema"], `${path}.input_schema`);
  checkStrict(parameters, { strict: tool["strict"], path: `${path}.input_schema` });
  return { type: "function", function: { name, ...(description ? { description } : {}), parameters } };
};

export interface Choice {
  readonly toolChoice: ToolChoice;
  /** At most one call in an answer. */
  readonly single: boolean;
}

/** Throws `bad_request`. */
export function readToolChoice(value: unknown, tools: readonly Tool[]): Choice {
  const choice = readFields(value, "tool_choice");
  const single =
    optional(readBoolean)(choice["disable_parallel_tool_use"], "tool_choice.disable_parallel_tool_use") ?? false;
  const type = readText(choice["type"], "tool_choice.type");
  if (type === "auto" || type === "none") return { toolChoice: type, single };
  if (type !== "any" && type !== "tool") throw unexpected("tool_choice.type", '"auto", "any", "tool" or "none"', type);
  requireTools(tools, type);
  if (type === "any") return { toolChoice: "required", single };
  const name = knownName(tools, { name: readText(choice["name"], "tool_choice.name"), path: "tool_choice.name" });
  return { toolChoice: { name }, single };
}
