/** The bodies of `POST /api/embed` and of the older `POST /api/embeddings`. */
import { t } from "elysia";
import { inferenceFields, Int } from "./message.ts";

const { model, options, keep_alive } = inferenceFields;

export const EmbedBody = t.Object(
  {
    model,
    /** A text or a list of texts: see the route. */
    input: t.Optional(t.Unknown()),
    truncate: t.Optional(t.Boolean()),
    dimensions: t.Optional(Int),
    options,
    keep_alive,
  },
  { title: "EmbedRequest" },
);
export type EmbedBody = typeof EmbedBody.static;

export const EmbeddingsBody = t.Object(
  { model, prompt: t.Optional(t.String()), options, keep_alive },
  { title: "EmbeddingRequest" },
);
export type EmbeddingsBody = typeof EmbeddingsBody.static;
