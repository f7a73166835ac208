/** The fixed endpoints, `/wake` and `/agent`: turns the fields of a body into an action. */
import { external } from "../../agent/boundary/tainted-text.ts";
import { withoutUndefined } from "../without-undefined.ts";
import type { AgentAction, WakeAction, WakeMode } from "../action.ts";
import { urlProblem } from "../queue/callback.ts";
import type { HooksConfig } from "../config.ts";
import { checkAction, NO_LEVEL, type Checked, type Checks } from "./checks.ts";
import { Fields, fieldSet } from "./fields.ts";
import { idempotencyKeyOf } from "./idempotency.ts";
import { Refusal, type ProblemName, type RefusalOptions } from "./problems.ts";
import { agentFields, RECIPIENT_LENGTH_MAX, wakeFields } from "./requests.ts";

const NAME_DEFAULT = "Hook";
/** The name precedes every summary. */
const NAME_LENGTH_MAX = 120;
const TIMEOUT_SECONDS_MAX = 86_400; // same limit as in the configuration

const WAKE = fieldSet(wakeFields);
const AGENT = fieldSet(agentFields);

export interface Direct extends Checked {
  /** The key from the body. */
  readonly idempotencyKey: string | undefined;
}

type Settings = Pick<HooksConfig, "strict" | "sessionKeys" | "callbacks">;

/** Throws a `Refusal`. */
export async function readDirect(
  endpoint: "wake" | "agent",
  { payload, settings, checks }: { payload: unknown; settings: Settings; checks: Checks },
): Promise<Direct> {
  const { action: asked, ...rest } =
    endpoint === "wake" ? readWake(payload, settings) : readAgent(payload, { settings, checks });
  const { action, warnings } = await checkAction(asked, checks);
  return { ...rest, action, warnings: [...rest.warnings, ...warnings] };
}

function readWake(payload: unknown, { strict }: Settings): Direct {
  const fields = new Fields(payload, WAKE);
  const text = fields.read("text", refuse("text_required"));
  const action: WakeAction = { kind: "wake", text: external(text), mode: modeOf(fields, "mode"), isWrapped: true };
  return { action, idempotencyKey: idempotencyKeyOf(fields), warnings: fields.warnings(strict) };
}

function readAgent(payload: unknown, { settings, checks }: { settings: Settings; checks: Checks }): Direct {
  const fields = new Fields(payload, AGENT);
  const message = fields.read("message", refuse("message_required"));
  const optional = {
    sessionKey: sessionKeyOf(fields, settings),
    agentId: fields.read("agentId", refuse("agent_not_allowed")), // never replace it with another agent
    to: recipientOf(fields),
    model: fields.read("model", refuse("model_required")),
    thinking: thinkingOf(fields, checks),
    timeoutSeconds: timeoutOf(fields),
    callbackUrl: callbackOf(fields, settings),
  };
  const action: AgentAction = {
    kind: "agent",
    message: external(message),
    name: nameOf(fields),
    wakeMode: modeOf(fields, "wakeMode"),
    deliver: deliverOf(fields),
    channel: fields.read("channel", refuse("channel_not_allowed", CHANNEL_NAMES)),
    tools: [],
    isWrapped: true,
    ...withoutUndefined(optional),
  };
  return { action, idempotencyKey: idempotencyKeyOf(fields), warnings: fields.warnings(settings.strict) };
}

type AgentFields = Fields<typeof agentFields>;

const CHANNEL_NAMES = { details: [{ field: "channel", reason: "expected the name of a channel" }] };

/** The handler for invalid fields that refuse the request. */
const refuse = (problem: ProblemName, options?: RefusalOptions) => (): never => {
  throw new Refusal(problem, options);
};

/** The handler for invalid fields that are ignored. */
const ignored = (fields: AgentFields, name: "name" | "sessionKey" | "thinking") => (): undefined =>
  fields.found(name, "expected text; ignored");

function modeOf<Name extends string>(
  fields: Fields<Readonly<Record<Name, typeof wakeFields.mode>>>,
  name: Name,
): WakeMode {
  const mode: unknown = fields.read(name, () => {
    fields.found(name, "expected 'now' or 'next-heartbeat'; taken as 'now'");
    return "now" as const;
  });
  return mode as WakeMode; // the schema allows only modes
}

/** The name as one line. */
function nameOf(fields: AgentFields): string {
  const given = fields.read("name", ignored(fields, "name"));
  const name = given?.replace(/[\p{Cc}\p{Zl}\p{Zp}\s]+/gu, " ") ?? NAME_DEFAULT;
  if (name.length <= NAME_LENGTH_MAX) return name;
  fields.found("name", `longer than ${NAME_LENGTH_MAX} characters; cut`);
  return name.slice(0, NAME_LENGTH_MAX).toWellFormed();
}

function sessionKeyOf(fields: AgentFields, { sessionKeys }: Settings): string | undefined {
  const key = fields.read("sessionKey", ignored(fields, "sessionKey"));
  if (key === undefined) return sessionKeys.default;
  if (!sessionKeys.allowFromRequest) throw new Refusal("session_key_not_allowed", { reason: "not from requests" });
  const fold = (text: string): string => text.normalize("NFKC").trim().toLowerCase();
  const prefixes = sessionKeys.prefixes.map(fold).filter((prefix) => prefix !== "");
  if (prefixes.length > 0 && !prefixes.some((prefix) => fold(key).startsWith(prefix))) {
    throw new Refusal("session_key_not_allowed", { reason: "none of hooks.sessionKeys.prefixes" });
  }
  return key;
}

function deliverOf(fields: AgentFields): boolean {
  const bad = (): undefined => fields.found("deliver", "expected true or false; taken as true");
  return fields.read("deliver", bad) ?? true;
}

/**
 * Chat ids are numbers on some platforms. An invalid recipient is refused, because a fallback would reach another
 * person.
 */
function recipientOf(fields: AgentFields): string | undefined {
  const reason = `expected a text of at most ${RECIPIENT_LENGTH_MAX} characters, or a whole number`;
  const to = fields.read("to", refuse("invalid_field", { details: [{ field: "to", reason }] }));
  return to === "" ? fields.found("to", "expected text; ignored") : to;
}

function thinkingOf(fields: AgentFields, checks: Checks): string | undefined {
  const level = fields.read("thinking", ignored(fields, "thinking"));
  if (level === undefined || checks.thinking(level)) return level;
  return fields.found("thinking", NO_LEVEL);
}

function timeoutOf(fields: AgentFields): number | undefined {
  const seconds = fields.read("timeoutSeconds", () =>
    fields.found("timeoutSeconds", "expected a number above 0; ignored"),
  );
  if (seconds === undefined || seconds <= TIMEOUT_SECONDS_MAX) return seconds && Math.max(1, Math.floor(seconds));
  fields.found("timeoutSeconds", `more than ${TIMEOUT_SECONDS_MAX}; taken as ${TIMEOUT_SECONDS_MAX}`);
  return TIMEOUT_SECONDS_MAX;
}

function callbackOf(fields: AgentFields, { callbacks }: Settings): string | undefined {
  const refuseFor = (reason: string) => refuse("callback_not_allowed", { details: [{ field: "callbackUrl", reason }] });
  const url = fields.read("callbackUrl", refuseFor("callbackUrl is not a text"));
  if (url === undefined) return undefined;
  if (!callbacks.allowFromRequest) throw new Refusal("callback_not_allowed", { reason: "not from requests" });
  const problem = urlProblem(url, { allowPrivate: callbacks.allowPrivateAddresses });
  return problem === undefined ? url : refuseFor(problem)();
}
