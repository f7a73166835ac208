/**
 * Shared fields of requests that run a model. Every field is optional: a required one is checked where its absence has
 * a special error text.
 */
import { t } from "elysia";
import { grammarFields } from "./grammar.ts";
import { loraFields } from "./lora.ts";

export const Image = t.Unsafe<Uint8Array>({ type: "string", contentEncoding: "base64" });

/** Elysia's own Integer also accepts strings. */
export const Int = t.Unsafe<number>({ type: "integer" });

/** Values that are parsed where they are used, because their errors have special texts. */
export const inferenceFields = {
  model: t.Optional(t.String()),
  stream: t.Optional(t.Boolean()),
  format: t.Optional(t.Unknown()),
  options: t.Optional(t.Record(t.String(), t.Unknown())),
  keep_alive: t.Optional(t.Unknown()),
  think: t.Optional(t.Unknown()),
  logprobs: t.Optional(t.Boolean()),
  top_logprobs: t.Optional(Int),
  truncate: t.Optional(t.Boolean()),
  shift: t.Optional(t.Boolean()),
  ...grammarFields,
  ...loraFields,
  /** Answers with the prompt instead of running the model. */
  _debug_render_only: t.Optional(t.Boolean()),
};

const ToolCallFunction = t.Object({
  index: t.Optional(Int),
  name: t.Optional(t.String()),
  /** An object. Clients that keep another API's history send JSON as text. */
  arguments: t.Optional(t.Record(t.String(), t.Unknown(), { orText: true })),
});

const ToolCall = t.Object({ id: t.Optional(t.String()), function: t.Optional(ToolCallFunction) });

export const Message = t.Object({
  role: t.Optional(t.String()),
  content: t.Optional(t.String()),
  thinking: t.Optional(t.String()),
  images: t.Optional(t.Array(Image)),
  tool_calls: t.Optional(t.Array(ToolCall)),
  tool_name: t.Optional(t.String()),
  tool_call_id: t.Optional(t.String()),
});
export type Message = typeof Message.static;

export const Tool = t.Object({
  type: t.Optional(t.String()),
  function: t.Optional(
    t.Object({
      name: t.Optional(t.String()),
      description: t.Optional(t.String()),
      parameters: t.Optional(t.Record(t.String(), t.Unknown())),
    }),
  ),
});
export type Tool = typeof Tool.static;
