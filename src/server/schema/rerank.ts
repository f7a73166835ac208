/** The body of `POST /api/rerank` and `/v1/rerank`, as the rerank APIs of Jina and Cohere have it. */
import { t } from "elysia";
import { inferenceFields, Int } from "./message.ts";

const { model, options, keep_alive, truncate } = inferenceFields;

export const RerankBody = t.Object(
  {
    model,
    query: t.Optional(t.String()),
    /** Texts, or objects with a `text`. */
    documents: t.Optional(t.Array(t.Unknown())),
    /** How many of the best are answered; all where absent. */
    top_n: t.Optional(Int),
    /** Answers with the texts too. */
    return_documents: t.Optional(t.Boolean()),
    /** What the model says instead of numbers from 0 to 1. */
    raw_scores: t.Optional(t.Boolean()),
    truncate,
    options,
    keep_alive,
  },
  { title: "RerankRequest" },
);
export type RerankBody = typeof RerankBody.static;
