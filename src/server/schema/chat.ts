/** The body of `POST /api/chat`. */
import { t } from "elysia";
import { inferenceFields, Message, Tool } from "./message.ts";

export const ChatBody = t.Object(
  {
    ...inferenceFields,
    messages: t.Optional(t.Array(Message)),
    tools: t.Optional(t.Array(Tool)),
    tool_choice: t.Optional(t.Unknown()),
    /** Variables for the model's chat template. */
    chat_template_kwargs: t.Optional(t.Unknown()),
    /** True if the messages came from outside: control tokens in them stay text. */
    outside: t.Optional(t.Boolean()),
  },
  { title: "ChatRequest" },
);
export type ChatBody = typeof ChatBody.static;
