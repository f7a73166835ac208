/** The field `tool_choice`: a word, the tool that must be called, or in the OpenAI API the allowed tools. */
import { AppError, readFields, readList, unexpected, type Fields, type Read } from "../../base/index.ts";
import type { Tool, ToolChoice } from "../../runtime/portable.ts";

const WORDS = ["auto", "none", "required"] as const;
const EXPECTED = '"auto", "none", "required" or {"type": "function", "function": {"name": "…"}}';

const wordIn = (value: unknown) => WORDS.find((word) => word === value);

/** Parses the field of a native request; undefined if absent. The runtime checks the name. Throws `bad_request`. */
export function parseToolChoice(value: unknown): ToolChoice | undefined {
  if (value === undefined) return undefined;
  const word = wordIn(value);
  if (word !== undefined) return word;
  const name = nativeName(value);
  if (name !== undefined) return { name };
  throw new AppError("bad_request", `tool_choice: expected ${EXPECTED}, got ${JSON.stringify(value).slice(0, 100)}`);
}

/** The name in an object, or in its `function`. */
function nativeName(value: unknown): string | undefined {
  if (typeof value !== "object" || value === null) return undefined;
  const { name, function: target } = value as { name?: unknown; function?: unknown }; // its fields are checked next
  return typeof name === "string" ? name : nativeName(target);
}

/** The tools that the model sees, and its choice among them. */
export interface ChosenTools {
  readonly tools: readonly Tool[];
  readonly toolChoice?: ToolChoice;
}

interface PlacedName {
  readonly name: string;
  readonly path: string;
}

/** The places of names in an API's requests. */
export interface ChoiceShape {
  /** The name in `{"type": "function", …}` or `{"type": "custom", …}`, with its path. Throws `bad_request`. */
  readonly nameIn: (item: Fields, path: string) => PlacedName;
  /** Key of the mode and the tools in `{"type": "allowed_tools", …}`; absent: they are in the object itself. */
  readonly allowedKey?: string;
}

/** Reads the choice of an OpenAI request. Throws `bad_request`, also for unknown tools. */
export function chooseTools(
  value: unknown,
  { tools, shape: { nameIn, allowedKey } }: { tools: readonly Tool[]; shape: ChoiceShape },
): ChosenTools {
  if (value === undefined) return { tools };
  const word = wordIn(value);
  if (word === "required") requireTools(tools, word);
  if (word !== undefined) return { tools, toolChoice: word };
  if (typeof value === "string") throw unexpected("tool_choice", '"auto", "none", "required" or an object', value);
  const readName: Read<string> = (item, path) => knownName(tools, nameIn(readFields(item, path), path));
  const choice = readFields(value, "tool_choice");
  const type = choice["type"] ?? "function";
  if (type === "function" || type === "custom") return { tools, toolChoice: { name: readName(choice, "tool_choice") } };
  if (type !== "allowed_tools") throw unexpected("tool_choice.type", '"function", "custom" or "allowed_tools"', type);
  const path = allowedKey === undefined ? "tool_choice" : `tool_choice.${allowedKey}`;
  const allowed = allowedKey === undefined ? choice : readFields(choice[allowedKey], path);
  const { tools: items } = allowed;
  const mode = allowed["mode"] ?? "auto";
  if (mode !== "auto" && mode !== "required") throw unexpected(`${path}.mode`, '"auto" or "required"', mode);
  const names = new Set(readList(readName)(items, `${path}.tools`));
  return { tools: tools.filter((tool) => names.has(tool.function.name)), toolChoice: mode };
}

/** Throws `bad_request` if a choice demands a call and there are no tools. */
export function requireTools(tools: readonly Tool[], word: string): void {
  if (tools.length === 0) throw new AppError("bad_request", `tool_choice: expected tools with "${word}", got none`);
}

/** The name, which must be a tool's. Throws `bad_request`. */
export function knownName(tools: readonly Tool[], { name, path }: PlacedName): string {
  if (tools.some((tool) => tool.function.name === name)) return name;
  throw unexpected(path, "the name of one of the tools", name);
}

/** Fields for a runtime request; empty without tools. */
export function toolFields({ tools, toolChoice }: ChosenTools): Partial<ChosenTools> {
  if (tools.length === 0) return {};
  return toolChoice === undefined ? { tools } : { tools, toolChoice };
}
