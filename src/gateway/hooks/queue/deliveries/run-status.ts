/** The public state of a run, for its sender. Times are epoch milliseconds. */
import { Type } from "@sinclair/typebox";
import { nullable, oneOfTexts, type Output, strictObject } from "../../../../base/schema.ts";
import { REPLY_STATES, RUN_STATES } from "./state.ts";

const text = Type.String();
const at = Type.Integer();

export const runStatusSchema = strictObject({
  id: text,
  deliveryId: text,
  kind: oneOfTexts(["wake", "agent"]),
  state: oneOfTexts(RUN_STATES),
  attempts: Type.Integer(),
  createdAt: at,
  startedAt: nullable(at),
  finishedAt: nullable(at),
  reason: nullable(text, { description: "Why it failed, or waits for another try" }),
  answer: nullable(text),
  model: nullable(text),
  reply: oneOfTexts(REPLY_STATES, { description: "State of the answer in the chat" }),
  replyReason: nullable(text, { description: "Why it failed, or waits for another try" }),
  callback: nullable(oneOfTexts(["pending", "sent", "failed"]), { description: "Null: not requested" }),
  replayOf: nullable(text, { description: "The run that this one repeats" }),
});
export type RunStatus = Readonly<Output<typeof runStatusSchema>>;
