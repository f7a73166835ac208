/** The body of `POST /v1/responses`. Fields of several shapes are read during conversion. */
import { t } from "elysia";
import { samplingFields } from "./sampling.ts";
import { Int } from "./message.ts";

const OpenMap = t.Record(t.String(), t.Unknown());

export const ResponsesBody = t.Object(
  {
    model: t.Optional(t.String()),
    input: t.Optional(t.Unknown()),
    instructions: t.Optional(t.String()),
    stream: t.Optional(t.Boolean()),
    max_output_tokens: t.Optional(Int),
    ...samplingFields,
    top_logprobs: t.Optional(Int),
    reasoning: t.Optional(
      t.Object({ effort: t.Optional(t.Unknown()), summary: t.Optional(t.String()), max_tokens: t.Optional(Int) }),
    ),
    /** Variables for the model's chat template. */
    chat_template_kwargs: t.Optional(t.Unknown()),
    text: t.Optional(OpenMap),
    tools: t.Optional(t.Array(t.Unknown())),
    tool_choice: t.Optional(t.Unknown()),
    parallel_tool_calls: t.Optional(t.Boolean()),
    truncation: t.Optional(t.String()),
    include: t.Optional(t.Array(t.String())),
    metadata: t.Optional(OpenMap),
    user: t.Optional(t.String()),
    safety_identifier: t.Optional(t.String()),
    prompt_cache_key: t.Optional(t.String()),
    store: t.Optional(t.Boolean()),
    background: t.Optional(t.Boolean()),
    previous_response_id: t.Optional(t.String()),
    conversation: t.Optional(t.Unknown()),
    prompt: t.Optional(t.Unknown()),
  },
  { title: "ResponsesRequest" },
);
export type ResponsesBody = typeof ResponsesBody.static;
