/** A delivery in a list. */
import { Type } from "@sinclair/typebox";
import { nullable, oneOfTexts, type Output, strictObject } from "../../../../base/schema.ts";
import { REPLY_STATES, RUN_STATES } from "./state.ts";

const text = (description?: string) => Type.String(description === undefined ? {} : { description });

export const summarySchema = strictObject({
  id: text(),
  requestId: text(),
  receivedAt: Type.Integer({ description: "Epoch milliseconds" }),
  path: text("Below `hooks.path`"),
  mappingId: nullable(text()),
  authKind: text(),
  authId: text("Which credential; never the credential"),
  bodyBytes: Type.Integer(),
  title: nullable(text(), { description: "What it was about, in the words of its sender; null: not known" }),
  replayOf: nullable(text()),
  runs: Type.Array(strictObject({ id: text(), state: oneOfTexts(RUN_STATES), reply: oneOfTexts(REPLY_STATES) })),
});
export type DeliverySummary = Readonly<Output<typeof summarySchema>>;
