/**
 * Administration of deliveries: list, inspect, replay and cancel them, and try a mapping without consequences. It needs
 * the gateway's own token, which no sender has. Knows no HTTP library.
 */
import { Type } from "@sinclair/typebox";
import { AppError, type Logger, retryAfter } from "../../../base/index.ts";
import type { Approval } from "../../agent/calls/approvals.ts";
import type { NodeStatus } from "../../database/peers.ts";
import { reader } from "../../../base/schema.ts";
import type { Deliveries } from "../queue/deliveries/deliveries.ts";
import type { DeliveryDetails, DeliveryFilter, DeliverySummary } from "../queue/deliveries/queries.ts";
import type { Replayed } from "../queue/deliveries/replay.ts";
import type { ReplayFilter } from "../queue/deliveries/replayable.ts";
import type { MailStatus } from "../mail/status.ts";
import { failureKey } from "../ingress/address.ts";
import { Refusal } from "../ingress/problems.ts";
import { Throttle } from "../ingress/throttle.ts";
import { isOneOf } from "../ingress/signatures/scheme.ts";
import { trimSlashes } from "../mapping/request.ts";
import type { Mapping } from "../mapping/index.ts";
import type { Cancelled } from "../queue/worker/cancel.ts";
import type { Approvals } from "../approvals.ts";
import type { Worker } from "../queue/worker/worker.ts";
import { filterFields, type Finding, type MappingSummary } from "./answers.ts";
import { replayAll, type ReplayedPage } from "./replay-all.ts";
import { dryRun, promptOf, type DryRun, type DryRunParts, type Sample } from "./dry-run.ts";

const PAGE_DEFAULT = 50;

export interface AdminDeps extends DryRunParts {
  /** The current `gateway.token`; undefined: administration is off. */
  readonly token: () => string | undefined;
  readonly deliveries: Pick<Deliveries, "list" | "find" | "run" | "replay" | "replayable">;
  readonly worker: Pick<Worker, "cancel" | "resend" | "isPaused" | "setPaused">;
  readonly approvals: Pick<Approvals, "list" | "decide">;
  /** Findings of an audit of the configuration, worst first. */
  readonly findings: () => Promise<readonly Finding[]>;
  readonly nodes: () => Promise<readonly NodeStatus[]>;
  readonly log: Logger;
  /** Undefined: no mailbox is watched. */
  readonly mail: () => MailStatus | undefined;
}

export interface Page {
  readonly deliveries: readonly DeliverySummary[];
  /** Value of `before` for the next page; null: this is the last. */
  readonly next: string | null;
}

/** A delivery with its body as text: UTF-8, or base64 if the body is not valid UTF-8. */
export type Details = Omit<DeliveryDetails, "body" | "runs"> & {
  readonly body: { readonly encoding: "utf8" | "base64"; readonly data: string } | null;
  /** With the prompt or the event text of the request, if the body is kept. */
  readonly runs: readonly (DeliveryDetails["runs"][number] & { readonly prompt?: string })[];
};

export interface Admin {
  /** Throws `not_found` if administration is off, `unauthorized`, or a `Refusal` after too many failures. */
  admit(authorization: string | null, peer: string | undefined): void;
  /** Throws `bad_request`. */
  list(query: URLSearchParams): Promise<Page>;
  /**
   * Throws `not_found`.
   * @param id of a delivery or one of its runs
   */
  find(id: string): Promise<Details>;
  /** Throws `not_found`, `conflict` or `busy`. */
  replay(id: string): Promise<Replayed>;
  /** One page; only a count if `isDryRun`. */
  replayAll(asked: ReplayFilter & { readonly isDryRun: boolean }): Promise<ReplayedPage>;
  /** Cancels the runs of a delivery, or one of them. Throws `not_found`. */
  cancel(id: string): Promise<readonly { readonly runId: string; readonly result: Cancelled }[]>;
  /** The servers that share the database, the oldest first; empty if the database is not shared. */
  nodes(): Promise<readonly NodeStatus[]>;
  /** The watched mailbox. Throws `not_found`. */
  mail(): MailStatus;
  /** In matching order. */
  mappings(): readonly MappingSummary[];
  findings(): Promise<readonly Finding[]>;
  /** The calls of tools that wait for an approval, the oldest first. */
  approvals(): Promise<readonly Approval[]>;
  /**
   * Throws `not_found`, or `conflict` if it is over, decided otherwise, or for another digest.
   * @param digest of the call that the operator saw; absent: the stored one
   */
  decide(
    code: string,
    verdict: { readonly verdict: "yes" | "no"; readonly digest?: string | undefined },
  ): Promise<Approval>;
  /** Pauses or resumes turns. */
  setPaused(isPaused: boolean): Promise<void>;
  isPaused(): boolean;
  /** Shows the effect of a mapping on a request; accepts nothing. Throws `not_found`. */
  test(mappingId: string, sample: Sample): Promise<DryRun>;
}

export function makeAdmin(deps: AdminDeps): Admin {
  const { deliveries, worker } = deps;
  const throttle = new Throttle(deps.now);
  const find = async (id: string): Promise<DeliveryDetails> => {
    const found = await deliveries.find((await deliveries.run(id))?.deliveryId ?? id);
    if (!found) throw new AppError("not_found", "no such delivery or run");
    return found;
  };
  return {
    admit(authorization, peer) {
      const token = deps.token();
      if (token === undefined) throw new AppError("not_found", "gateway.token is not set: there is no administration");
      const given = /^bearer\s+(.*)$/i.exec(authorization?.trim() ?? "")?.[1]?.trim() ?? "";
      const key = failureKey(peer ?? "");
      if (isOneOf(given, [token])) return throttle.clear(key);
      const { lockedForMs } = throttle.fail(key);
      if (lockedForMs !== undefined) throw new Refusal("too_many_failures", { headers: retryAfter(lockedForMs) });
      throw new AppError("unauthorized", "unauthorized: expected the gateway token (gateway.token) as a bearer token");
    },
    async list(query) {
      const filter = parseFilter(query);
      const limit = filter.limit ?? PAGE_DEFAULT;
      const found = await deliveries.list({ ...filter, limit });
      return { deliveries: found, next: found.length < limit ? null : (found.at(-1)?.id ?? null) };
    },
    find: async (id) => withText(await find(id)),
    replay: (id) => deliveries.replay(id),
    async replayAll({ path, ...asked }) {
      const page = await replayAll(deps, { ...asked, path: path && trimSlashes(path) });
      const { replayed, skipped } = page;
      if (replayed > 0) deps.log.info("hooks: replayed", { what: asked.what, replayed, skipped: skipped.length });
      return page;
    },
    async cancel(id) {
      const runIds = (await deliveries.run(id)) ? [id] : (await find(id)).runs.map((run) => run.id);
      const results = await Promise.all(runIds.map(async (runId) => ({ runId, result: await worker.cancel(runId) })));
      return results.flatMap(({ runId, result }) => (result === undefined ? [] : [{ runId, result }]));
    },
    mail() {
      const found = deps.mail();
      if (found) return found;
      throw new AppError("not_found", "no mailbox is watched: hooks.mail has no account, or is off");
    },
    nodes: () => deps.nodes(),
    mappings: () => deps.mappings(deps.settings()).all.map(summaryOf),
    findings: () => deps.findings(),
    approvals: () => deps.approvals.list(),
    decide: (code, verdict) => deps.approvals.decide(code, { ...verdict, by: "admin" }),
    setPaused: (isPaused) => worker.setPaused(isPaused),
    isPaused: () => worker.isPaused,
    test: (mappingId, sample) => dryRun(deps, { mappingId, sample }),
  };
}

const summaryOf = ({ id, preset, config, plan }: Mapping): MappingSummary => ({
  id,
  preset: preset ?? null,
  path: config.match.path ?? null,
  action: config.action,
  channel: config.action === "agent" && config.deliver ? config.channel : null,
  problem: plan.ok ? null : plan.problem,
});

const filters = reader(Type.Object(filterFields));

function parseFilter(query: URLSearchParams): DeliveryFilter {
  const known = Object.keys(filterFields);
  const unknown = [...query.keys()].find((name) => !known.includes(name));
  if (unknown !== undefined) throw new AppError("bad_request", `unknown filter; known: ${known.join(", ")}`);
  const parsed = filters.safeParse(Object.fromEntries(query));
  if (!parsed.success) {
    const [problem] = parsed.problems;
    throw new AppError("bad_request", `${problem?.path.join(".")}: ${problem?.message}`);
  }
  const { mapping: mappingId, path, ...filter } = parsed.data;
  return { ...filter, mappingId, path: path && trimSlashes(path) };
}

function withText({ body, ...details }: DeliveryDetails): Details {
  if (body === null) return { ...details, body };
  const runs = details.runs.map((run) => ({ ...run, prompt: promptOf(run.action, details) }));
  return { ...details, runs, body: textOf(body) };
}

function textOf(body: Uint8Array): NonNullable<Details["body"]> {
  try {
    return { encoding: "utf8", data: new TextDecoder("utf-8", { fatal: true }).decode(body) };
  } catch {
    return { encoding: "base64", data: Buffer.from(body).toString("base64") };
  }
}
