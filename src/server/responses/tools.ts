/**
 * The tools of a Responses request, and which of them the model may or must call.
 */
import { AppError } from "../../base/errors.ts";
import type { Tool, ToolChoice } from "../../runtime/runtime.ts";
import { optional, readFields, readList, readText, unexpected, type Fields } from "../fields.ts";

/** Tools of other servers that a model may do without; the others are refused. */
const DISPENSABLE = /^web_search/;

export interface Tools {
  readonly tools: readonly Tool[];
  /** As the request has them: the ones that the model was given. */
  readonly given: readonly Fields[];
  readonly choice: ToolChoice | undefined;
  /** Types of tools that the model was not given. */
  readonly left: readonly string[];
}

/** Throws `bad_request`. */
export function readTools(body: { tools?: unknown[]; tool_choice?: unknown }): Tools {
  const all = readList(readFields)(body.tools ?? [], "tools");
  const left = all.map((tool) => tool["type"]).filter(isDispensable);
  const given = all.filter((tool) => !isDispensable(tool["type"]));
  const tools = all.flatMap((tool, i) => (isDispensable(tool["type"]) ? [] : toTools(tool, `tools.${i}`)));
  return { given, left, ...readChoice(body.tool_choice, tools) };
}

const isDispensable = (type: unknown): type is string => typeof type === "string" && DISPENSABLE.test(type);

/** A function, or the functions of a namespace under joined names. */
function toTools(tool: Fields, path: string, namespace?: string): Tool[] {
  const type = optional(readText)(tool["type"], `${path}.type`) ?? "function";
  if (type === "namespace" && namespace === undefined) {
    const name = readText(tool["name"], `${path}.name`);
    const members = readList(readFields)(tool["tools"], `${path}.tools`);
    return members.flatMap((member, i) => toTools(member, `${path}.tools.${i}`, name));
  }
  if (type !== "function") throw unexpected(`${path}.type`, '"function": a tool that the client runs', type);
  const name = readText(tool["name"], `${path}.name`);
  if (name === "") throw unexpected(`${path}.name`, "a name", name);
  const description = optional(readText)(tool["description"], `${path}.description`);
  const parameters = optional(readFields)(tool["parameters"], `${path}.parameters`);
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

/** The name under which the model knows a function. */
export const joinedName = (namespace: string | undefined, name: string): string =>
  namespace === undefined ? name : `${namespace}.${name}`;

/** The two names of a function, from the one that the model knows. */
export function splitName(name: string, given: readonly Fields[]): { name: string; namespace?: string } {
  const namespaces = given.filter((tool) => tool["type"] === "namespace").map((tool) => String(tool["name"]));
  const namespace = namespaces.find((space) => name.startsWith(`${space}.`));
  return namespace === undefined ? { name } : { name: name.slice(namespace.length + 1), namespace };
}

type Chosen = Pick<Tools, "tools" | "choice">;

function readChoice(value: unknown, tools: readonly Tool[]): Chosen {
  if (value === undefined) return { tools, choice: undefined };
  if (value === "auto" || value === "none") return { tools, choice: value };
  if (value === "required") {
    if (tools.length === 0) throw new AppError("bad_request", 'tool_choice: expected tools with "required", got none');
    return { tools, choice: "required" };
  }
  const choice = readFields(value, "tool_choice");
  const names = new Set(tools.map((tool) => tool.function.name));
  switch (choice["type"]) {
    case "function":
      return { tools, choice: { name: readName(choice, { names, path: "tool_choice" }) } };
    case "allowed_tools": {
      const mode = choice["mode"] ?? "auto";
      if (mode !== "auto" && mode !== "required") throw unexpected("tool_choice.mode", '"auto" or "required"', mode);
      const read = (item: unknown, path: string): string => readName(readFields(item, path), { names, path });
      const allowed = new Set(readList(read)(choice["tools"], "tool_choice.tools"));
      return { tools: tools.filter((tool) => allowed.has(tool.function.name)), choice: mode };
    }
    default:
      throw unexpected("tool_choice.type", '"function" or "allowed_tools"', choice["type"]);
  }
}

function readName(choice: Fields, { names, path }: { names: ReadonlySet<string>; path: string }): string {
  const namespace = optional(readText)(choice["namespace"], `${path}.namespace`);
  const name = joinedName(namespace, readText(choice["name"], `${path}.name`));
  if (names.has(name)) return name;
  throw unexpected(`${path}.name`, "the name of one of the tools", name);
}
