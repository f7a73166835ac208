/**
 * The result of a transform: settings that replace the mapping's. It can restrict a run, never extend its rights: it
 * cannot drop the boundary, add tools, or choose a chat.
 */
import { Type, type TSchema } from "@sinclair/typebox";
import { AppError } from "../../../base/index.ts";
import { changed, nullable, oneOfTexts, type Output, reader, strictObject } from "../../../base/schema.ts";
import type { MappingConfig } from "../config.ts";

const maybe = <S extends TSchema>(schema: S) => Type.Optional(nullable(schema));
const text = maybe(Type.String({ maxLength: 1024 * 1024 }));
const oneWord = changed(Type.String({ maxLength: 512 }), (given) => given.trim());
const word = maybe(oneWord);
const kind = maybe(oneOfTexts(["wake", "agent"]));
const mode = maybe(oneOfTexts(["now", "next-heartbeat"]));
const flag = maybe(Type.Boolean());

const shape = strictObject({
  kind,
  /** Named as in mappings. */
  action: kind,
  /**
   * Replaces the template; all of it counts as outside text. `message` belongs to an agent, `text` to a wake; each is
   * the default of the other.
   */
  message: text,
  text,
  /** Shown by templates as `values.…`: so an operator's words stay apart from values that a transform found. */
  values: maybe(Type.Record(Type.String(), Type.Unknown())),
  /** `mode` belongs to a wake, `wakeMode` to an agent's summary; each is the default of the other. */
  mode,
  wakeMode: mode,
  name: word,
  sessionKey: word,
  deliver: flag,
  channel: word,
  to: maybe(Type.Union([oneWord, changed(Type.Number(), String)])),
  model: word,
  thinking: word,
  timeoutSeconds: maybe(Type.Number({ exclusiveMinimum: 0, maximum: 86_400 })),
  agentId: word,
  tools: maybe(Type.Array(Type.String(), { maxItems: 64 })),
  itemId: word,
  allowUnsafeExternalContent: flag,
});
const overrides = reader(shape);

type Shape = Output<typeof shape>;
type Given = { readonly [K in keyof Shape]?: NonNullable<Shape[K]> };
/** Without undefined and null. */
export type Overrides = Omit<Given, "action">;

/** Throws `runner` naming the key and the expected type, never a value. */
export function parseOverrides(output: unknown): Overrides {
  const parsed = overrides.safeParse(output);
  if (!parsed.success) {
    const problems = parsed.problems.slice(0, 3).map(({ path, message }) => `${path.join(".") || "it"}: ${message}`);
    throw new AppError("runner", `the transform returned invalid settings: ${problems.join("; ")}`);
  }
  const set = Object.entries(parsed.data).filter(([, value]) => value !== undefined && value !== null);
  const { action, ...given } = Object.fromEntries(set) as Given; // a subset of the keys
  if (action === undefined) return given;
  if (given.kind === undefined || given.kind === action) return { ...given, kind: action };
  throw new AppError("runner", `the transform returned two kinds: kind is '${given.kind}', action is '${action}'`);
}

/** Merges a transform's overrides into a mapping's settings; `warnings` lists ignored ones. */
export function mergeOverrides(
  config: MappingConfig,
  given: Overrides,
): { readonly config: MappingConfig; readonly warnings: readonly string[] } {
  const warnings: string[] = [];
  const action = given.kind ?? config.action;
  if (given.allowUnsafeExternalContent && !config.allowUnsafeExternalContent) {
    warnings.push("the transform cannot turn the safety boundary off");
  }
  if (given.deliver && !config.deliver) warnings.push("the transform cannot turn delivery on: the mapping says no");
  const added = (given.tools ?? []).filter((name) => !config.tools.includes(name));
  if (added.length > 0) warnings.push(`the transform cannot add tools: ${added.join(", ").slice(0, 200)}`);
  const asked = action === "wake" ? (given.mode ?? given.wakeMode) : (given.wakeMode ?? given.mode);
  if (asked === "now" && config.wakeMode === "next-heartbeat") {
    warnings.push("the transform cannot start now what the mapping defers to the next heartbeat");
  }
  return {
    config: {
      ...config,
      action,
      wakeMode: asked === "next-heartbeat" ? "next-heartbeat" : config.wakeMode,
      deliver: config.deliver && (given.deliver ?? true),
      channel: given.channel ?? config.channel,
      timeoutSeconds: given.timeoutSeconds === undefined ? config.timeoutSeconds : Math.ceil(given.timeoutSeconds),
      agentId: given.agentId ?? config.agentId,
      tools: given.tools ? config.tools.filter((name) => given.tools?.includes(name)) : config.tools,
      allowUnsafeExternalContent: config.allowUnsafeExternalContent && (given.allowUnsafeExternalContent ?? true),
    },
    warnings,
  };
}
