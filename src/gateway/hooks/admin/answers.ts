/** Schemas of the answers to operators, used by the API description; tests check real answers against them. */
import { Type } from "@sinclair/typebox";
import { nullable, oneOfTexts, type Output, readable, strictObject } from "../../../base/schema.ts";
import { approvalSchema } from "../../agent/calls/approvals.ts";
import { nodeSchema } from "../../database/peers.ts";
import { acceptedSchema } from "../queue/deliveries/answer.ts";
import { runStatusSchema } from "../queue/deliveries/run-status.ts";
import { RUN_STATES } from "../queue/deliveries/state.ts";
import { summarySchema } from "../queue/deliveries/summary.ts";

const text = (description?: string) => Type.String(description === undefined ? {} : { description });
const optional = Type.Optional;

const action = Type.Object({ kind: oneOfTexts(["wake", "agent"]) });

export const pageSchema = strictObject({
  deliveries: Type.Array(summarySchema),
  next: nullable(text(), { description: "Value of `before` for the next page; null: this is the last page" }),
});

export const detailsSchema = strictObject({
  ...summarySchema.properties,
  providerDeliveryId: nullable(text()),
  idempotencyKey: nullable(text()),
  bodySha256: text(),
  body: nullable(strictObject({ encoding: oneOfTexts(["utf8", "base64"]), data: text() }), {
    description: "Where `hooks.queue.keepBodies` keeps it",
  }),
  headers: Type.Record(Type.String(), Type.String(), { description: "The stored headers; never credentials" }),
  response: strictObject({ status: Type.Integer(), body: acceptedSchema }),
  runs: Type.Array(
    strictObject({
      ...runStatusSchema.properties,
      action,
      sessionKey: text(),
      prompt: optional(text("The text for the model or the main session, if the body is kept")),
    }),
  ),
});

export const replayedSchema = strictObject({ deliveryId: text(), runIds: Type.Array(text()) });

export const replayedPageSchema = strictObject({
  found: Type.Integer({ description: "Runs that matched, on this page and later ones" }),
  replayed: Type.Integer(),
  skipped: Type.Array(strictObject({ runId: text(), reason: text() })),
  next: nullable(text(), { description: "Value of `after` for the next page; null: this is the last page" }),
  retryAfterMs: nullable(Type.Integer(), {
    description: "Wait time before the next page, because half of the queue is taken; else null",
  }),
});

const cancelled = strictObject({ runId: text(), result: oneOfTexts(["cancelled", "stopping", "recalled", "over"]) });
export const cancelledSchema = strictObject({ runs: Type.Array(cancelled) });

const mapping = strictObject({
  id: text(),
  preset: nullable(text()),
  path: nullable(text(), { description: "Below `hooks.path`; null: every one" }),
  action: oneOfTexts(["wake", "agent"]),
  channel: nullable(text(), { description: "Null: no reply is sent" }),
  problem: nullable(text(), { description: "The reason why it is unusable" }),
});
export type MappingSummary = Readonly<Output<typeof mapping>>;
export const mappingsSchema = strictObject({ mappings: Type.Array(mapping) });

const finding = strictObject({
  id: text("Stable name"),
  severity: oneOfTexts(["error", "warn", "info"]),
  key: text("As in `hooks.mappings[0].channel`"),
  where: text("File and line; empty without a file"),
  message: text(),
});
export type Finding = Readonly<Output<typeof finding>>;
export const findingsSchema = strictObject({ findings: Type.Array(finding) });

export const nodesSchema = strictObject({
  nodes: Type.Array(nodeSchema, { description: "The oldest first; empty if the database is not shared" }),
});

export const approvalsSchema = strictObject({ approvals: Type.Array(approvalSchema) });
export const decidedSchema = strictObject({ approval: approvalSchema, verdict: oneOfTexts(["yes", "no"]) });

export const pausedSchema = strictObject({ paused: Type.Boolean() });

export const dryRunSchema = strictObject({
  mapping: text(),
  reaches: nullable(text(), { description: "The mapping that a request like this reaches" }),
  outcome: oneOfTexts(["actions", "nothing", "answered", "refused", "failed"], {
    description: "answered: it is a provider's check of the address; refused: no mapping sees such a body",
  }),
  reason: optional(text()),
  answer: optional(
    strictObject(
      { status: Type.Integer(), body: text() },
      { description: "The sender's answer, if no run is reported" },
    ),
  ),
  actions: Type.Array(
    strictObject({
      action,
      prompt: text("What the model, or the main session, would read"),
      reply: optional(Type.Object({}, { description: "Where the answer would go, or why nowhere" })),
      refused: optional(text("Why the request would be refused for this action")),
    }),
  ),
  warnings: Type.Array(text()),
});

const LIMIT = { minimum: 1, maximum: 500 };

/** Filters of the list, as query parameters. */
export const filterFields = {
  state: optional(
    oneOfTexts(RUN_STATES, {
      description: "With a run in this state; failed: or whose reply failed, or may not have arrived",
    }),
  ),
  path: optional(text("Received at this path")),
  mapping: optional(text("Taken by this mapping")),
  before: optional(text("Older than this delivery")),
  limit: optional(
    readable(Type.Unsafe<string>(Type.String({ description: "Most results, from 1 to 500; default 50" })), (given) => {
      const value = /^\d{1,9}$/.test(given) ? Number(given) : Number.NaN;
      const isOne = value >= LIMIT.minimum && value <= LIMIT.maximum;
      return isOne ? { value } : { problem: `expected a whole number from ${LIMIT.minimum} to ${LIMIT.maximum}` };
    }),
  ),
};
