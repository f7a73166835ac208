/** The body of `POST /api/rerank` and `/v1/rerank`, as in the rerank APIs of Jina and Cohere. */
import { t } from "elysia";
import { inferenceFields, Int } from "./message.ts";

const { model, options, keep_alive, truncate } = inferenceFields;

export const RerankBody = t.Object(
  {
    model,
    query: t.Optional(t.String()),
    /** Texts, or objects with a `text`. */
    documents: t.Optional(t.Array(t.Unknown())),
    /** Another name of `documents` for llama-server's routes, and whether their answer has the texts. */
    texts: t.Optional(t.Array(t.String())),
    return_text: t.Optional(t.Boolean()),
    /** Number of results; all by default. */
    top_n: t.Optional(Int),
    /** True includes the texts in the answer. */
    return_documents: t.Optional(t.Boolean()),
    /** True returns the model's raw scores instead of numbers from 0 to 1. */
    raw_scores: t.Optional(t.Boolean()),
    truncate,
    options,
    keep_alive,
  },
  { title: "RerankRequest" },
);
export type RerankBody = typeof RerankBody.static;
