/** The bodies of answers to operators, as the API description tells them; tests hold real answers against these. */
import { z } from "zod";
import { runStatusSchema } from "../deliveries/run-status.ts";
import { REPLY_STATES, RUN_STATES } from "../deliveries/state.ts";
import { acceptedSchema } from "../deliveries/answer.ts";

const delivery = z.object({
  id: z.string(),
  requestId: z.string(),
  receivedAt: z.int().describe("Epoch milliseconds"),
  path: z.string().describe("Below `hooks.path`"),
  mappingId: z.string().nullable(),
  authKind: z.string(),
  authId: z.string().describe("Which credential; never the credential"),
  bodyBytes: z.int(),
  replayOf: z.string().nullable(),
});
const action = z.looseObject({ kind: z.enum(["wake", "agent"]) });

export const pageSchema = z.object({
  deliveries: z.array(
    delivery.extend({
      runs: z.array(z.object({ id: z.string(), state: z.enum(RUN_STATES), reply: z.enum(REPLY_STATES) })),
    }),
  ),
  next: z.string().nullable().describe("For `before` of the next page; null: there is none"),
});

export const detailsSchema = delivery.extend({
  providerDeliveryId: z.string().nullable(),
  idempotencyKey: z.string().nullable(),
  bodySha256: z.string(),
  body: z
    .object({ encoding: z.enum(["utf8", "base64"]), data: z.string() })
    .nullable()
    .describe("Where `hooks.queue.keepBodies` keeps it"),
  headers: z.record(z.string(), z.string()).describe("Those that are kept; never credentials"),
  response: z.object({ status: z.int(), body: acceptedSchema }),
  runs: z.array(runStatusSchema.extend({ action, sessionKey: z.string() })),
});

export const replayedSchema = z.object({ deliveryId: z.string(), runIds: z.array(z.string()) });

export const cancelledSchema = z.object({
  runs: z.array(z.object({ runId: z.string(), result: z.enum(["cancelled", "stopping", "over"]) })),
});

export const dryRunSchema = z.object({
  mapping: z.string(),
  reaches: z.string().nullable().describe("The mapping that a request like this reaches"),
  outcome: z.enum(["actions", "nothing", "failed"]),
  reason: z.string().optional(),
  actions: z.array(
    z.object({
      action,
      prompt: z.string().describe("What the model, or the main session, would read"),
      reply: z.looseObject({}).optional().describe("Where the answer would go, or why nowhere"),
      refused: z.string().optional().describe("Why the request would be refused for this action"),
    }),
  ),
  warnings: z.array(z.string()),
});

/** Filters of the list, as parameters of the address. */
export const filterFields = {
  state: z.enum(RUN_STATES).describe("With a run in this state"),
  path: z.string().describe("Received at this path"),
  mapping: z.string().describe("Taken by this mapping"),
  before: z.string().describe("Older than this delivery"),
  limit: z.coerce.number().pipe(z.int().min(1).max(500)).describe("At most so many; 50 where absent"),
};
