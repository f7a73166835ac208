/** The body of `POST /api/generate`. */
import { t } from "elysia";
import { Image, inferenceFields, Int } from "./message.ts";

export const GenerateBody = t.Object(
  {
    ...inferenceFields,
    prompt: t.Optional(t.String()),
    suffix: t.Optional(t.String()),
    images: t.Optional(t.Array(Image)),
    system: t.Optional(t.String()),
    template: t.Optional(t.String()),
    context: t.Optional(t.Array(Int)),
    raw: t.Optional(t.Boolean()),
    /** With `keep_alive` 0 and no prompt: the model is unloaded at once, and its requests fail. */
    force: t.Optional(t.Boolean()),
  },
  { title: "GenerateRequest" },
);
export type GenerateBody = typeof GenerateBody.static;
