/**
 * Tries a mapping on a request: shows its actions, the prompts that a model would read, and the targets of replies.
 * Transforms really run; nothing is accepted, and credentials are not checked.
 */
import { renderTainted } from "../../agent/boundary/index.ts";
import { AppError } from "../../../base/index.ts";
import type { Target } from "../../channels/channel.ts";
import type { HookAction } from "../action.ts";
import { acknowledgement, answerHandshake } from "../ingress/handshake.ts";
import { checkAction, ownModelOf, type Checks } from "../ingress/checks.ts";
import { bodyLimit } from "../ingress/mapped.ts";
import { readPayload } from "../ingress/payload.ts";
import { Refusal } from "../ingress/problems.ts";
import { type Mapping, type MappingRequest, runMapping, type RunParts } from "../mapping/index.ts";
import type { MappingSettings, MappingsOf } from "../mapping/live.ts";
import { trimSlashes, viewOf } from "../mapping/request.ts";
import { sourceOf } from "../queue/worker/conclude.ts";

export interface DryRunParts {
  readonly settings: () => MappingSettings;
  readonly mappings: MappingsOf;
  readonly transforms: RunParts["transforms"];
  readonly checks: Checks;
  readonly resolveTarget: (asked: { channel: string; to?: string }) => Promise<Target | { readonly reason: string }>;
  readonly now: () => number;
}

/** A request to try. */
export interface Sample {
  readonly payload: unknown;
  /** The raw body, instead of `payload`. */
  readonly rawBody?: Uint8Array;
  readonly headers: Readonly<Record<string, string>>;
  readonly query: Readonly<Record<string, string>>;
}

export interface DryAction {
  readonly action: HookAction;
  /** The text that the model, or the main session, would read. */
  readonly prompt: string;
  /** Target of the reply; absent: no reply is requested. */
  readonly reply?: Target | { readonly reason: string };
  /** The reason to refuse the request for this action. */
  readonly refused?: string;
}

export interface DryRun {
  readonly mapping: string;
  /** The mapping that such a request reaches: perhaps another, or null. */
  readonly reaches: string | null;
  /** `answered`: it is a provider's check of the address. `refused`: the body is refused before any mapping. */
  readonly outcome: "actions" | "nothing" | "answered" | "refused" | "failed";
  readonly reason?: string;
  /** The sender's answer, if no run is reported. */
  readonly answer?: { readonly status: number; readonly body: string };
  readonly actions: readonly DryAction[];
  readonly warnings: readonly string[];
}

/** Throws `not_found` if there is no such mapping. */
export async function dryRun(
  parts: DryRunParts,
  { mappingId, sample: given }: { mappingId: string; sample: Sample },
): Promise<DryRun> {
  const { all, find, transformsDir, transformTimeoutMs } = parts.mappings(parts.settings());
  const mapping = all.find(({ id }) => id === mappingId);
  if (!mapping) {
    const known = all.map(({ id }) => id).join(", ");
    throw new AppError("not_found", `no such mapping; known: ${known === "" ? "none" : known}`);
  }
  const none = { mapping: mapping.id, reaches: mapping.id, actions: [], warnings: [] };
  const payload = await payloadOf(parts, mapping, given).catch(asRefusal);
  if (payload instanceof Refusal) return { ...none, outcome: "refused", reason: payload.message };
  const { headers, query } = given;
  const sample = { payload, headers, query };
  const request: MappingRequest = { ...sample, path: pathOf(mapping), now: parts.now() };
  const check = checkAnswer(mapping, sample);
  if (check) return { ...none, outcome: "answered", answer: check };
  const reached = reach(() => find(request));
  if (reached instanceof AppError) return { ...none, reaches: null, outcome: "failed", reason: reached.message };
  const nothing = { outcome: "nothing", answer: nothingAnswer(mapping, sample) } as const;
  if (!reached && mapping.isFor(request)) return { ...none, ...nothing, reason: "match.when leaves this request out" };
  const channels = parts.checks.channels();
  const outcome = await runMapping(mapping, request, {
    transforms: parts.transforms,
    transformsDir,
    transformTimeoutMs,
    isChannel: (name) => channels.find(name) !== undefined,
  });
  const about = { ...none, reaches: reached?.id ?? null, outcome: outcome.kind };
  if (outcome.kind === "failed") return { ...about, reason: outcome.reason };
  if (outcome.kind === "nothing") {
    const isLeftOut = mapping.leavesOut(viewOf(request, mapping.config.auth));
    return { ...about, ...nothing, ...(isLeftOut ? { reason: "the preset leaves this event out" } : {}) };
  }
  const tried = await Promise.all(outcome.actions.map((action) => tryAction(parts, mapping, action)));
  const warnings = new Set([...outcome.warnings, ...tried.flatMap((each) => each.warnings)]);
  return { ...about, actions: tried.map(({ action }) => action), warnings: [...warnings] };
}

/** The text that the model, or the main session, reads of a request; the markers get new ids each time. */
export function promptOf(action: HookAction, run: { readonly mappingId: string | null }): string {
  const text = action.kind === "wake" ? action.text : action.message;
  return renderTainted(text, { isWrapped: action.isWrapped, source: sourceOf(run) });
}

/** Throws a `Refusal`. */
async function payloadOf({ settings }: DryRunParts, mapping: Mapping, sample: Sample): Promise<unknown> {
  const { payload, rawBody, headers } = sample;
  if (!rawBody) return payload;
  const { maxBodyBytes, strict } = settings().hooks;
  if (rawBody.length > bodyLimit(mapping, maxBodyBytes)) throw new Refusal("payload_too_large");
  return readPayload(rawBody, { contentType: headers["content-type"] ?? null, isMapped: true, isStrict: strict });
}

function asRefusal(error: unknown): Refusal {
  if (error instanceof Refusal) return error;
  throw error;
}

type Answer = NonNullable<DryRun["answer"]>;

/** Assumes that the sender's credentials are valid. */
function checkAnswer({ config: { handshake } }: Mapping, { payload, headers, query }: Sample): Answer | undefined {
  const known = { method: "POST", headers, query: new URLSearchParams(query), payload, knowsSecret: () => true };
  const reply = handshake && answerHandshake(handshake, known);
  return reply && { status: reply.status, body: reply.body };
}

function nothingAnswer({ config }: Mapping, { headers }: Sample): Answer {
  const { status, body } = acknowledgement(config, headers["content-type"] ?? null) ?? NO_CONTENT;
  return { status, body };
}

const NO_CONTENT: Answer = { status: 204, body: "" };

/** An error if a condition cannot search all of a text. */
function reach(find: () => Mapping | undefined): Mapping | AppError | undefined {
  try {
    return find();
  } catch (error) {
    if (error instanceof AppError) return error;
    throw error;
  }
}

const pathOf = ({ id, config }: Mapping): string => trimSlashes(config.match.path ?? id);

async function tryAction(
  { checks, resolveTarget }: DryRunParts,
  { id, config }: Mapping,
  asked: HookAction,
): Promise<{ action: DryAction; warnings: readonly string[] }> {
  const checked = await checkAction(asked, checks, ownModelOf(config)).catch(asRefusal);
  const isRefused = checked instanceof Refusal;
  const action = isRefused ? asked : checked.action;
  const prompt = promptOf(action, { mappingId: id });
  const reply =
    action.kind === "agent" && action.deliver
      ? {
          reply: await resolveTarget({
            channel: action.channel,
            ...(action.to === undefined ? {} : { to: action.to }),
          }),
        }
      : {};
  const refused = isRefused ? { refused: [checked.message, checked.reason].filter(Boolean).join(": ") } : {};
  return { action: { action, prompt, ...reply, ...refused }, warnings: isRefused ? [] : checked.warnings };
}
