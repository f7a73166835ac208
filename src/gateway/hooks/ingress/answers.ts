/** Schemas of answers: they type the answers to senders, and describe them in the API description. */
import { Type } from "@sinclair/typebox";
import { oneOfTexts, type Output, strictObject } from "../../../base/schema.ts";
import { acceptedSchema } from "../queue/deliveries/answer.ts";
import { runStatusSchema } from "../queue/deliveries/run-status.ts";
import { PROBLEM_NAMES, type ProblemName } from "./problems.ts";

/** The answer to a request that waited for the outcome. */
export const outcomeSchema = strictObject({
  ...acceptedSchema.properties,
  run: Type.Optional(strictObject(runStatusSchema.properties, { description: "Of one run" })),
  runs: Type.Optional(Type.Array(runStatusSchema, { description: "Of several" })),
});
export type OutcomeBody = Output<typeof outcomeSchema>;

export const runSchema = strictObject({ ok: Type.Literal(true), run: runStatusSchema });
export type RunBody = Output<typeof runSchema>;

/** @param names possible error codes */
export const refusalOf = (names: readonly ProblemName[]) =>
  strictObject({
    ok: Type.Literal(false),
    error: Type.String({ description: "A text for readers; holds nothing of the request" }),
    code: oneOfTexts(names, { description: "For programs" }),
    requestId: Type.String(),
    details: Type.Optional(
      Type.Array(strictObject({ field: Type.String(), reason: Type.String() }), {
        description: "What is wrong with which field",
      }),
    ),
  });
const refusalSchema = refusalOf(PROBLEM_NAMES);
export type RefusalBody = Output<typeof refusalSchema>;
