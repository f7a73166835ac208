/** How a run stands: what its sender may know. Times are epoch milliseconds. */
import { z } from "zod";
import { REPLY_STATES, RUN_STATES } from "./state.ts";

const at = z.int();

export const runStatusSchema = z.object({
  id: z.string(),
  deliveryId: z.string(),
  kind: z.enum(["wake", "agent"]),
  state: z.enum(RUN_STATES),
  attempts: z.int(),
  createdAt: at,
  startedAt: at.nullable(),
  finishedAt: at.nullable(),
  reason: z.string().nullable().describe("Why it failed, or waits for another try"),
  answer: z.string().nullable(),
  model: z.string().nullable(),
  reply: z.enum(REPLY_STATES).describe("What became of the answer in the chat"),
  replyReason: z.string().nullable(),
  callback: z.enum(["pending", "sent", "failed"]).nullable().describe("Null: none was asked for"),
  replayOf: z.string().nullable().describe("The run that this one repeats"),
});
export type RunStatus = Readonly<z.output<typeof runStatusSchema>>;
