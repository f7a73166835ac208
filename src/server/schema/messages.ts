/**
 * The body of `POST /v1/messages` and `POST /v1/messages/count_tokens`. Fields of several shapes are read during
 * conversion.
 */
import { t } from "elysia";
import { grammarFields } from "./grammar.ts";
import { loraFields } from "./lora.ts";
import { Int } from "./message.ts";

export const MessagesBody = t.Object(
  {
    model: t.Optional(t.String()),
    max_tokens: t.Optional(Int),
    messages: t.Optional(t.Array(t.Unknown())),
    system: t.Optional(t.Unknown()),
    stream: t.Optional(t.Boolean()),
    temperature: t.Optional(t.Number()),
    top_p: t.Optional(t.Number()),
    top_k: t.Optional(Int),
    stop_sequences: t.Optional(t.Array(t.String())),
    tools: t.Optional(t.Array(t.Unknown())),
    mcp_servers: t.Optional(t.Array(t.Unknown())),
    tool_choice: t.Optional(t.Unknown()),
    thinking: t.Optional(t.Unknown()),
    thread: t.Optional(t.Unknown()),
    output_config: t.Optional(t.Unknown()),
    /** Variables for the model's chat template. */
    chat_template_kwargs: t.Optional(t.Unknown()),
    ...grammarFields,
    ...loraFields,
    output_format: t.Optional(t.Unknown()), // the former name of output_config
  },
  { title: "MessagesRequest" },
);
export type MessagesBody = typeof MessagesBody.static;
