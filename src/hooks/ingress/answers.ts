/** The bodies of answers: what senders get is typed by these schemas, and described by them in the API description. */
import { z } from "zod";
import { acceptedSchema } from "../deliveries/answer.ts";
import { runStatusSchema } from "../deliveries/run-status.ts";
import { PROBLEM_NAMES } from "./problems.ts";

/** Of a request that waited for the outcome. */
export const outcomeSchema = acceptedSchema.extend({
  run: runStatusSchema.optional().describe("Of one run"),
  runs: z.array(runStatusSchema).optional().describe("Of several"),
});
export type OutcomeBody = z.output<typeof outcomeSchema>;

export const runSchema = z.object({ ok: z.literal(true), run: runStatusSchema });
export type RunBody = z.output<typeof runSchema>;

export const refusalSchema = z.object({
  ok: z.literal(false),
  error: z.string().describe("For people; holds nothing of the request"),
  code: z.enum(PROBLEM_NAMES).describe("For programs"),
  requestId: z.string(),
  details: z
    .array(z.object({ field: z.string(), reason: z.string() }))
    .optional()
    .describe("What is wrong with which field"),
});
export type RefusalBody = z.output<typeof refusalSchema>;
