/** The fixed endpoints, `/wake` and `/agent`: from the fields of a body to an action. */
import { external } from "../../base/passage.ts";
import type { AgentAction, HookAction, WakeAction } from "../action.ts";
import { urlProblem } from "../callback.ts";
import type { HooksConfig } from "../config.ts";
import { checkAction, type Checked, type Checks } from "./checks.ts";
import { Fields } from "./fields.ts";
import { idempotencyKeyOf } from "./idempotency.ts";
import { Refusal } from "./problems.ts";

const NAME_DEFAULT = "Hook";
/** A name stands in front of every summary. */
const NAME_LENGTH_MAX = 120;
const RECIPIENT_LENGTH_MAX = 512;
const TIMEOUT_SECONDS_MAX = 86_400; // as in the configuration

const WAKE_FIELDS = ["text", "mode", "idempotencyKey"];
const AGENT_FIELDS = [
  "message",
  "name",
  "sessionKey",
  "agentId",
  "wakeMode",
  "deliver",
  "channel",
  "to",
  "model",
  "thinking",
  "timeoutSeconds",
  "callbackUrl",
  "idempotencyKey",
];

export interface Direct extends Checked<HookAction> {
  /** From the body. */
  readonly idempotencyKey: string | undefined;
}

type Settings = Pick<HooksConfig, "strict" | "sessionKeys" | "callbacks">;

/** Throws a `Refusal`. */
export async function readDirect(
  endpoint: "wake" | "agent",
  { payload, settings, checks }: { payload: unknown; settings: Settings; checks: Checks },
): Promise<Direct> {
  const fields = new Fields(payload, endpoint === "wake" ? WAKE_FIELDS : AGENT_FIELDS);
  const read = endpoint === "wake" ? readWake(fields) : readAgent(fields, { settings, checks });
  const idempotencyKey = idempotencyKeyOf(fields);
  const fieldWarnings = fields.warnings(settings.strict);
  const { action, warnings } = await checkAction(read, checks);
  return { action, warnings: [...fieldWarnings, ...warnings], idempotencyKey };
}

function readWake(fields: Fields): WakeAction {
  const text = required(fields, "text", "text_required");
  return { kind: "wake", text: external(text), mode: fields.mode("mode"), isWrapped: true };
}

function readAgent(fields: Fields, { settings, checks }: { settings: Settings; checks: Checks }): AgentAction {
  const message = required(fields, "message", "message_required");
  const optional = {
    sessionKey: sessionKeyOf(fields, settings),
    agentId: agentOf(fields),
    to: recipientOf(fields),
    model: fields.get("model") === undefined ? undefined : required(fields, "model", "model_required"),
    thinking: thinkingOf(fields, checks),
    timeoutSeconds: timeoutOf(fields),
    callbackUrl: callbackOf(fields, settings),
  };
  return {
    kind: "agent",
    message: external(message),
    name: nameOf(fields),
    wakeMode: fields.mode("wakeMode"),
    deliver: deliverOf(fields),
    channel: channelOf(fields),
    tools: [],
    isWrapped: true,
    ...withoutUndefined(optional),
  };
}

/** The object without what is undefined: absent fields are absent from what is stored. */
function withoutUndefined<T extends object>(object: T): { [K in keyof T]?: Exclude<T[K], undefined> } {
  const entries = Object.entries(object).filter(([, value]) => value !== undefined);
  return Object.fromEntries(entries) as { [K in keyof T]?: Exclude<T[K], undefined> }; // just filtered
}

function required(
  fields: Fields,
  name: string,
  problem: "text_required" | "message_required" | "model_required",
): string {
  const value = fields.get(name);
  if (typeof value !== "string" || value.trim() === "") throw new Refusal(problem);
  return value.trim();
}

/** One line. */
function nameOf(fields: Fields): string {
  const name = fields.text("name")?.replace(/[\p{Cc}\p{Zl}\p{Zp}\s]+/gu, " ") ?? NAME_DEFAULT;
  if (name.length <= NAME_LENGTH_MAX) return name;
  fields.found("name", `longer than ${NAME_LENGTH_MAX} characters; cut`);
  return name.slice(0, NAME_LENGTH_MAX).toWellFormed();
}

function sessionKeyOf(fields: Fields, { sessionKeys }: Settings): string | undefined {
  const key = fields.text("sessionKey");
  if (key === undefined) return sessionKeys.default;
  if (!sessionKeys.allowFromRequest) throw new Refusal("session_key_not_allowed", { reason: "not from requests" });
  const fold = (text: string): string => text.normalize("NFKC").trim().toLowerCase();
  const prefixes = sessionKeys.prefixes.map(fold).filter((prefix) => prefix !== "");
  if (prefixes.length > 0 && !prefixes.some((prefix) => fold(key).startsWith(prefix))) {
    throw new Refusal("session_key_not_allowed", { reason: "none of hooks.sessionKeys.prefixes" });
  }
  return key;
}

/** What is no agent is refused: another agent is not what was asked for. */
function agentOf(fields: Fields): string | undefined {
  const value = fields.get("agentId");
  if (value === undefined || (typeof value === "string" && value.trim() !== "")) return value?.trim();
  throw new Refusal("agent_not_allowed");
}

/** Forms have no booleans. */
function deliverOf(fields: Fields): boolean {
  const value = fields.get("deliver");
  if (value === undefined || value === true || value === "true") return true;
  if (value === false || value === "false") return false;
  fields.found("deliver", "expected true or false; taken as true");
  return true;
}

function channelOf(fields: Fields): string {
  const value = fields.get("channel") ?? "last";
  if (typeof value === "string" && value.trim() !== "") return value;
  throw new Refusal("channel_not_allowed", {
    details: [{ field: "channel", reason: "expected the name of a channel" }],
  });
}

/** Chat ids are numbers on some platforms. What is no recipient is refused: the last one is somebody else. */
function recipientOf(fields: Fields): string | undefined {
  const value = fields.get("to");
  if (value === undefined || Number.isSafeInteger(value)) return value === undefined ? undefined : String(value);
  if (typeof value === "string" && value.length <= RECIPIENT_LENGTH_MAX) return fields.text("to");
  const reason = `expected a text of at most ${RECIPIENT_LENGTH_MAX} characters, or a whole number`;
  throw new Refusal("invalid_field", { details: [{ field: "to", reason }] });
}

function thinkingOf(fields: Fields, checks: Checks): string | undefined {
  const level = fields.text("thinking");
  if (level === undefined || checks.thinking(level)) return level;
  return fields.found("thinking", "no such level; ignored");
}

function timeoutOf(fields: Fields): number | undefined {
  const value = fields.get("timeoutSeconds");
  if (value === undefined) return undefined;
  const isText = typeof value === "string" && /^\d+(\.\d+)?$/.test(value.trim());
  const seconds = typeof value === "number" || isText ? Number(value) : Number.NaN;
  if (!Number.isFinite(seconds) || seconds <= 0) {
    return fields.found("timeoutSeconds", "expected a number above 0; ignored");
  }
  if (seconds > TIMEOUT_SECONDS_MAX) {
    fields.found("timeoutSeconds", `more than ${TIMEOUT_SECONDS_MAX}; taken as ${TIMEOUT_SECONDS_MAX}`);
    return TIMEOUT_SECONDS_MAX;
  }
  return Math.max(1, Math.floor(seconds));
}

function callbackOf(fields: Fields, { callbacks }: Settings): string | undefined {
  const url = fields.get("callbackUrl");
  if (url === undefined) return undefined;
  if (!callbacks.allowFromRequest) throw new Refusal("callback_not_allowed", { reason: "not from requests" });
  const problem =
    typeof url === "string"
      ? urlProblem(url, { allowPrivate: callbacks.allowPrivateAddresses })
      : "callbackUrl is no text";
  if (problem) throw new Refusal("callback_not_allowed", { details: [{ field: "callbackUrl", reason: problem }] });
  return String(url);
}
