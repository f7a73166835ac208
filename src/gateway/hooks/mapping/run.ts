/**
 * Runs a mapping on a request: each item of its list, or the whole request, becomes an action, through the transform if
 * there is one. A request succeeds as a whole or fails as a whole.
 */
import { AppError } from "../../../base/index.ts";
import { operator } from "../../agent/boundary/tainted-text.ts";
import type { HookAction } from "../action.ts";
import type { TransformInput } from "./transforms/messages.ts";
import type { TransformSettings } from "./transforms/pool.ts";
import { buildAction } from "./action.ts";
import type { Mapping, Plan } from "./mapping.ts";
import { type Overrides, parseOverrides } from "./overrides.ts";
import { type MappingRequest, type View, viewOf } from "./request.ts";

/** Maximum number of actions of one request. */
export const ITEMS_MAX = 200;
/** Items of one request whose transforms run or wait at once. */
const ITEMS_AT_ONCE = 8;

export type MappingOutcome =
  | {
      readonly kind: "actions";
      readonly actions: readonly HookAction[];
      /** Number of items beyond the limit; the last action reports it to the main session. */
      readonly leftOut: number;
      /** Ignored parts of the request, for the log and the response. */
      readonly warnings: readonly string[];
    }
  /** The request is valid and needs no action. */
  | { readonly kind: "nothing" }
  /** `reason` is for the log: it names settings and keys. `mapping_failed`: not the sender's fault. */
  | {
      readonly kind: "failed";
      readonly code: "bad_request" | "too_large" | "busy" | "cancelled" | "mapping_failed";
      readonly reason: string;
    };

export interface RunParts {
  readonly transforms: {
    run(settings: TransformSettings, input: TransformInput, signal?: AbortSignal): Promise<unknown>;
  };
  readonly transformsDir: string;
  /** For all transforms of one request. */
  readonly transformTimeoutMs: number;
  readonly isChannel: (name: string) => boolean;
  readonly signal?: AbortSignal;
}

/** Never throws for a fault of a request or a transform. */
export async function runMapping(mapping: Mapping, request: MappingRequest, parts: RunParts): Promise<MappingOutcome> {
  const { plan } = mapping;
  if (!plan.ok) return { kind: "failed", code: "mapping_failed", reason: `mapping '${mapping.id}': ${plan.problem}` };
  try {
    return await run(mapping, { plan: plan.plan, view: viewOf(request, mapping.config.auth), parts });
  } catch (error) {
    if (!(error instanceof AppError)) throw error;
    return { kind: "failed", code: codeOf(error), reason: error.message };
  }
}

function codeOf({ code }: AppError): Extract<MappingOutcome, { kind: "failed" }>["code"] {
  return code === "bad_request" || code === "too_large" || code === "busy" || code === "cancelled"
    ? code
    : "mapping_failed";
}

interface Job {
  readonly plan: Plan;
  readonly view: View;
  readonly parts: RunParts;
}

async function run(mapping: Mapping, { plan, view, parts }: Job): Promise<MappingOutcome> {
  const items = plan.items?.(view);
  const views = items ? items.slice(0, ITEMS_MAX).map((item, index) => ({ ...view, item, index })) : [view];
  const leftOut = items ? Math.max(0, items.length - ITEMS_MAX) : 0;
  const deadline = performance.now() + parts.transformTimeoutMs;
  const built = await inParallel(views, parts.signal, async (each, signal) => {
    if (mapping.leavesOut(each)) return undefined;
    const given = await transformed(mapping, { view: each, parts, deadline, signal });
    if (given === null) return undefined;
    const shown = given.values ? { ...each, values: given.values } : each;
    return buildAction({ mapping, plan, view: shown, given, isChannel: parts.isChannel });
  });
  const done = built.filter((each) => each !== undefined);
  const actions = done.map(({ action }) => action);
  const warnings = new Set(done.flatMap((each) => each.warnings));
  if (leftOut > 0) {
    warnings.add(`${leftOut} of ${views.length + leftOut} items were left out: at most ${ITEMS_MAX} at once`);
    actions.push(leftOutEvent(mapping, leftOut));
  }
  return actions.length === 0 ? { kind: "nothing" } : { kind: "actions", actions, leftOut, warnings: [...warnings] };
}

/**
 * The results of `work` for each item, in order, a few at a time. The first failure stops the others, and is thrown.
 * @param gone a signal that stops all of them
 */
async function inParallel<Item, Made>(
  items: readonly Item[],
  gone: AbortSignal | undefined,
  work: (item: Item, signal: AbortSignal) => Promise<Made>,
): Promise<Made[]> {
  const failed = new AbortController();
  const signal = gone ? AbortSignal.any([gone, failed.signal]) : failed.signal;
  const made: Made[] = [];
  const waiting = items.entries();
  const workThrough = async (): Promise<void> => {
    for (const [i, item] of waiting) {
      if (signal.aborted) throw new AppError("cancelled", "request canceled");
      made[i] = await work(item, signal);
    }
  };
  try {
    await Promise.all(Array.from({ length: Math.min(ITEMS_AT_ONCE, items.length) }, workThrough));
  } catch (error) {
    failed.abort();
    throw error;
  }
  return made;
}

interface Transforming {
  readonly view: View;
  readonly parts: RunParts;
  readonly deadline: number;
  readonly signal: AbortSignal;
}

/** Null: the transform produces no action. An empty result: there is no transform, or it changes nothing. */
async function transformed(
  { id, config }: Mapping,
  { view, parts, deadline, signal }: Transforming,
): Promise<Overrides | null> {
  if (!config.transform) return {};
  const late = (): AppError =>
    new AppError("timeout", `mapping '${id}': its transforms took more than ${parts.transformTimeoutMs} ms`);
  const timeoutMs = Math.ceil(deadline - performance.now());
  if (timeoutMs <= 0) throw late();
  const { path, query, headers, payload, item, index } = view;
  const input = { path, query, headers, payload, ...(index === undefined ? {} : { item, index }) };
  const limits = { timeoutMs, limitMs: parts.transformTimeoutMs };
  const settings = { ...config.transform, lane: id, folder: parts.transformsDir, ...limits };
  const output = await parts.transforms.run(settings, input, signal).catch((error: unknown) => {
    // an item waits for others of its list, so the list is too long for its time limit
    const isLate = index !== undefined && error instanceof AppError && error.code === "busy";
    throw isLate && performance.now() >= deadline - 1 ? late() : error;
  });
  if (output === null) return null;
  return output === undefined ? {} : parseOverrides(output);
}

/** Reports dropped items: nothing accepted is lost silently. */
function leftOutEvent({ id }: Mapping, leftOut: number): HookAction {
  const text = `Mapping '${id}' got more items in one request than it takes: ${leftOut} were left out.`;
  return { kind: "wake", text: operator(text), mode: "next-heartbeat", isWrapped: true, isNotice: true };
}
