/** The bodies of `POST /api/tokenize` and `POST /api/detokenize`. */
import { t } from "elysia";
import { inferenceFields, Int } from "./message.ts";

const { model, options, keep_alive } = inferenceFields;

export const TokenizeBody = t.Object(
  {
    model,
    options,
    keep_alive,
    content: t.Optional(t.String()),
    /** Other names of `content`. */
    text: t.Optional(t.String()),
    prompt: t.Optional(t.String()),
    add_special: t.Optional(t.Boolean()),
    parse_special: t.Optional(t.Boolean()),
    with_pieces: t.Optional(t.Boolean()),
  },
  { title: "TokenizeRequest" },
);
export type TokenizeBody = typeof TokenizeBody.static;

export const DetokenizeBody = t.Object(
  { model, options, keep_alive, tokens: t.Optional(t.Array(Int)) },
  { title: "DetokenizeRequest" },
);
export type DetokenizeBody = typeof DetokenizeBody.static;
