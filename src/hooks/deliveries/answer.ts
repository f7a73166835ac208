/** The answer to an accepted request; stored with it and repeated for the same idempotency key. */
import { z } from "zod";

export const acceptedSchema = z.object({
  ok: z.literal(true),
  mode: z.enum(["now", "next-heartbeat"]).optional().describe("Of a wake"),
  runId: z.string().describe("The run, or the first of several"),
  runIds: z.array(z.string()).optional().describe("Where there are several"),
  dispatched: z.int().optional().describe("How many those are"),
  requestId: z.string(),
  warnings: z.array(z.string()).optional().describe("What was left out of account"),
});
export type AcceptedBody = z.output<typeof acceptedSchema>;

export interface HookResponse {
  readonly status: number;
  readonly body: AcceptedBody;
}
