/** The bodies of answers: what senders get is typed by these schemas, and described by them in the API description. */
import { z } from "zod";
import { runStatusSchema } from "../deliveries/run-status.ts";
import { PROBLEM_NAMES } from "./problems.ts";

export const acceptedSchema = z.object({
  ok: z.literal(true),
  mode: z.enum(["now", "next-heartbeat"]).optional().describe("Of a wake"),
  runId: z.string().describe("The run, or the first of several"),
  runIds: z.array(z.string()).optional().describe("Where there are several"),
  dispatched: z.int().optional().describe("How many there are, where several"),
  requestId: z.string(),
  warnings: z.array(z.string()).optional().describe("What was left out of account"),
});
export type AcceptedBody = z.output<typeof acceptedSchema>;

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
