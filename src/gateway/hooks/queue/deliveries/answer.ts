/** The answer to an accepted request; stored with it and repeated for the same idempotency key. */
import { Type } from "@sinclair/typebox";
import { oneOfTexts, type Output, strictObject } from "../../../../base/schema.ts";

const texts = (description: string) => Type.Optional(Type.Array(Type.String(), { description }));

export const acceptedSchema = strictObject({
  ok: Type.Literal(true),
  mode: Type.Optional(oneOfTexts(["now", "next-heartbeat"], { description: "Mode of a wake" })),
  runId: Type.String({ description: "The run, or the first of several" }),
  runIds: texts("All runs, if there are several"),
  dispatched: Type.Optional(Type.Integer({ description: "Number of the runs" })),
  requestId: Type.String(),
  warnings: texts("What was left out of account"),
});
export type AcceptedBody = Output<typeof acceptedSchema>;

export interface HookResponse {
  readonly status: number;
  readonly body: AcceptedBody;
}
