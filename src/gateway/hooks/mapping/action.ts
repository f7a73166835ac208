/** Builds the action of a request from its mapping and the transform's result. */
import { oneLine } from "../../agent/boundary/index.ts";
import { AppError } from "../../../base/index.ts";
import { external, type TaintedText, plain } from "../../agent/boundary/tainted-text.ts";
import { withoutUndefined } from "../without-undefined.ts";
import type { AgentAction, HookAction, WakeAction } from "../action.ts";
import { presets } from "./presets/index.ts";
import type { Preset } from "./presets/preset.ts";
import { shortHash } from "./filters.ts";
import type { Mapping, Plan } from "./mapping.ts";
import { mergeOverrides, type Overrides } from "./overrides.ts";
import type { View } from "./request.ts";
import { plainText, type Rendered } from "./template.ts";

const NAME_DEFAULT = "Hook";
const NAME_CHARS_MAX = 100;

export interface ActionParts {
  readonly mapping: Mapping;
  readonly plan: Plan;
  readonly view: View;
  readonly given: Overrides;
  /** True if there is a channel of this name, besides `last`. */
  readonly isChannel: (name: string) => boolean;
}

export interface Built {
  readonly action: HookAction;
  readonly warnings: readonly string[];
}

/**
 * Undefined: the preset describes nothing for this request. Throws `bad_request` for an empty text or an invalid
 * value, `too_large` for a text that is too long.
 */
export function buildAction(parts: ActionParts): Built | undefined {
  const { mapping, given } = parts;
  const { config, warnings } = mergeOverrides(mapping.config, given);
  const itemId = own("itemId", parts);
  const shared = { isWrapped: !config.allowUnsafeExternalContent, ...withoutUndefined({ itemId }) };
  const content = contentOf(parts, config.action);
  if (!content) return undefined;
  if (plain(content).trim() === "") {
    throw new AppError(
      "bad_request",
      `mapping '${mapping.id}': expected a text for the ${config.action} action, got an empty one`,
    );
  }
  if (config.action === "wake") {
    return { action: { kind: "wake", text: content, mode: config.wakeMode, ...shared } satisfies WakeAction, warnings };
  }
  if (config.channel !== "last" && !parts.isChannel(config.channel)) {
    throw new AppError(
      "bad_request",
      `mapping '${mapping.id}': channel: expected a configured channel, got '${config.channel}'`,
    );
  }
  const { timeoutSeconds, agentId, callbackUrl, fallbackChannels } = config;
  const optional = {
    sessionKey: own("sessionKey", parts),
    to: word("to", parts),
    model: word("model", parts),
    thinking: word("thinking", parts),
    timeoutSeconds,
    agentId,
    callbackUrl,
    fallbackChannels,
  };
  const action: AgentAction = {
    kind: "agent",
    message: content,
    name: oneLine(word("name", parts) ?? "", NAME_CHARS_MAX) || NAME_DEFAULT,
    wakeMode: config.wakeMode,
    deliver: config.deliver,
    channel: config.channel,
    tools: config.tools,
    ...shared,
    ...withoutUndefined(optional),
  };
  return { action, warnings };
}

/** The transform's text, else the template's, else the preset's. */
function contentOf({ mapping, plan, view, given }: ActionParts, kind: "wake" | "agent"): TaintedText | undefined {
  const whole = kind === "wake" ? (given.text ?? given.message) : (given.message ?? given.text);
  if (whole !== undefined) return external(whole);
  const template = kind === "wake" ? plan.text : plan.message;
  if (template) return template(view).tainted;
  if (!mapping.preset) return [];
  const preset: Preset = presets[mapping.preset];
  return preset.describe(view);
}

/** The preset's value, as the default of the operator's; see `word` for a template with a missing value. */
function own(key: "sessionKey" | "itemId", parts: ActionParts): string | undefined {
  const { mapping, plan, view, given } = parts;
  if (given[key] || plan[key] || !mapping.preset) return word(key, parts);
  const preset: Preset = presets[mapping.preset];
  const text = preset[key]?.(view);
  return key === "itemId" && text !== undefined ? idOf(text) : text;
}

const isOneLine = (text: string): boolean => !/[\p{Cc}\p{Zl}\p{Zp}]/u.test(text);

/** Replaces an id that is too long, or not on one line, by its digest. */
const idOf = (text: string): string => (text.length > CHARS_MAX.itemId || !isOneLine(text) ? shortHash(text) : text);

const CHARS_MAX = { name: 1000, sessionKey: 256, to: 512, model: 256, thinking: 32, itemId: 256 } as const;

/**
 * A key or an id with a missing value counts as absent: otherwise all senders that lack the value would share a
 * conversation.
 */
const WHOLE_ONLY: readonly string[] = ["sessionKey", "itemId", "to"];

/** A one-line setting; undefined if it is empty. */
function word(key: keyof typeof CHARS_MAX, { mapping, plan, view, given }: ActionParts): string | undefined {
  const asked = given[key];
  const rendered: Rendered | undefined = asked === undefined ? plan[key]?.(view) : undefined;
  if (rendered?.isPartial && WHOLE_ONLY.includes(key)) return undefined;
  const text = (asked ?? (rendered ? plainText(rendered) : "")).trim();
  if (text === "") return undefined;
  if (key === "itemId") return idOf(text);
  if (text.length > CHARS_MAX[key]) {
    const limit = `expected at most ${CHARS_MAX[key]} characters, got ${text.length}`;
    throw new AppError("bad_request", `mapping '${mapping.id}': ${key}: ${limit}`);
  }
  if (key !== "name" && !isOneLine(text)) {
    throw new AppError("bad_request", `mapping '${mapping.id}': ${key}: expected a text without control characters`);
  }
  return text;
}
