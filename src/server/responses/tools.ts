/** The tools of a Responses request, and the choice among them. */
import { optional, readFields, readList, readName, readText, unexpected, type Fields } from "../../base/index.ts";
import type { Tool } from "../../runtime/portable.ts";
import { readCustomTool } from "../answers/custom-tools.ts";
import { type McpOffer, toolsOf } from "../answers/server-tools.ts";
import { isMcp } from "./mcp-tools.ts";
import { checkStrict } from "../answers/strict-schema.ts";
import { isDispensable } from "../answers/provider-tools.ts";
import { chooseTools, type ChoiceShape, type ChosenTools } from "../answers/tool-choice.ts";

export interface Tools extends ChosenTools {
  /** The tools that the model was given, in the request's format. */
  readonly given: readonly Fields[];
  /** Types of dropped tools. */
  readonly left: readonly string[];
}

/**
 * Throws `bad_request`.
 * @param offers tools of servers, in place of the items of type `mcp`
 */
export function readTools(body: { tools?: unknown[]; tool_choice?: unknown }, offers: readonly McpOffer[] = []): Tools {
  const all = readList(readFields)(body.tools ?? [], "tools");
  const left = all.map((tool) => tool["type"]).filter(isDispensable);
  const given = all.filter((tool) => !isDispensable(tool["type"]));
  const isOurs = (tool: Fields): boolean => isMcp(tool) || isDispensable(tool["type"]);
  const own = all.flatMap((tool, i) => (isOurs(tool) ? [] : toTools(tool, `tools.${i}`)));
  const tools = [...own, ...toolsOf(offers)];
  return { given, left, ...chooseTools(body.tool_choice, { tools, shape: CHOICE }) };
}

/** A function, or the functions of a namespace under joined names. */
function toTools(tool: Fields, path: string, namespace?: string): Tool[] {
  const type = optional(readText)(tool["type"], `${path}.type`) ?? "function";
  if (type === "namespace" && namespace === undefined) {
    const name = readText(tool["name"], `${path}.name`);
    const members = readList(readFields)(tool["tools"], `${path}.tools`);
    return members.flatMap((member, i) => toTools(member, `${path}.tools.${i}`, name));
  }
  if (type === "custom") {
    const custom = readCustomTool(tool, path);
    return [{ type: "function", function: { ...custom, name: joinedName(namespace, custom.name) } }];
  }
  if (type !== "function") {
    throw unexpected(`${path}.type`, '"function" or "custom": a tool that the client runs', type);
  }
  const name = readName(tool["name"], `${path}.name`);
  const description = optional(readText)(tool["description"], `${path}.description`);
  const parameters = optional(readFields)(tool["parameters"], `${path}.parameters`);
  if (parameters) checkStrict(parameters, { strict: tool["strict"], path: `${path}.parameters` });
  return [
    {
      type: "function",
      function: {
        name: joinedName(namespace, name),
        ...(description ? { description } : {}),
        ...(parameters ? { parameters } : {}),
      },
    },
  ];
}

/** The model's name of a function. */
export const joinedName = (namespace: string | undefined, name: string): string =>
  namespace === undefined ? name : `${namespace}.${name}`;

/** Splits the model's name of a function into namespace and name. */
export function splitName(name: string, given: readonly Fields[]): { name: string; namespace?: string } {
  for (const tool of given) {
    if (tool["type"] !== "namespace") continue;
    const space = String(tool["name"]);
    const own = name.slice(space.length + 1);
    if (joinedName(space, own) === name && membersOf(tool).some((each) => each["name"] === own))
      return { name: own, namespace: space };
  }
  return { name }; // a function's name may have dots, and so may a namespace's
}

const membersOf = (namespace: Fields): Fields[] => readList(readFields)(namespace["tools"], "tools");

/**
 * True if the tool is a custom (free-text) tool.
 * @param name the model's name of it
 */
export function isCustom(name: string, given: readonly Fields[]): boolean {
  const { name: own, namespace } = splitName(name, given);
  const space = given.find((tool) => tool["type"] === "namespace" && tool["name"] === namespace);
  const tools = space ? membersOf(space) : given;
  return tools.some((tool) => tool["type"] === "custom" && tool["name"] === own);
}

const CHOICE: ChoiceShape = {
  nameIn(item, path) {
    const namespace = optional(readText)(item["namespace"], `${path}.namespace`);
    return { name: joinedName(namespace, readText(item["name"], `${path}.name`)), path: `${path}.name` };
  },
};
