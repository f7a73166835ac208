/**
 * The response object of the Responses API: the request as it was understood, and the output. Fields:
 * https://platform.openai.com/docs/api-reference/responses/object
 */
import { type Fields } from "../../base/index.ts";
import type { Statistics } from "../../runtime/portable.ts";
import type { Options } from "../../engine/index.ts";
import type { ResponsesBody } from "../schema/responses.ts";

type Status = "in_progress" | "completed" | "incomplete";

export interface OutputText {
  readonly type: "output_text";
  text: string;
  readonly annotations: readonly never[];
  readonly logprobs: object[];
}

export type Item =
  | {
      readonly type: "reasoning";
      readonly id: string;
      status: Status;
      summary: { type: "summary_text"; text: string }[];
      encrypted_content: string | null;
    }
  | { readonly type: "message"; readonly id: string; status: Status; readonly role: "assistant"; content: OutputText[] }
  | {
      readonly type: "function_call";
      readonly id: string;
      status: Status;
      readonly call_id: string;
      readonly name: string;
      readonly namespace?: string;
      arguments: string;
    }
  | {
      readonly type: "custom_tool_call";
      readonly id: string;
      status: Status;
      readonly call_id: string;
      readonly name: string;
      readonly namespace?: string;
      input: string;
    }
  | McpCallItem
  | McpListItem;

/** A call that the server ran. */
export interface McpCallItem {
  readonly type: "mcp_call";
  readonly id: string;
  status: Status | "failed";
  readonly server_label: string;
  readonly name: string;
  arguments: string;
  output: string | null;
  error: string | null;
  readonly approval_request_id: null;
}

/** The tools of a server that the model was given. */
export interface McpListItem {
  readonly type: "mcp_list_tools";
  readonly id: string;
  readonly server_label: string;
  tools: readonly object[];
  readonly error: null;
}

/** The fields that are equal in all events. */
export interface Head {
  readonly id: string;
  readonly model: string;
  /** Seconds since 1970. */
  readonly createdAt: number;
  readonly body: ResponsesBody;
  /** True if the response is kept. */
  readonly isKept: boolean;
  /** The tools that the model was given. */
  readonly tools: readonly Fields[];
  /** The effective sampling options: the request's, or the model's. */
  readonly sampling: Required<Pick<Options, "temperature" | "top_p" | "presence_penalty" | "frequency_penalty">>;
}

export interface Outcome {
  readonly status: Status | "failed";
  readonly output: readonly Item[];
  readonly completedAt?: number;
  readonly statistics?: Statistics;
  readonly reasoningTokens?: number;
  readonly error?: { readonly code: string; readonly message: string };
}

export function responseOf({ id, model, createdAt, body, isKept, tools, sampling }: Head, outcome: Outcome) {
  return {
    id,
    object: "response",
    created_at: createdAt,
    completed_at: outcome.completedAt ?? null,
    status: outcome.status,
    error: outcome.error ?? null,
    incomplete_details: outcome.status === "incomplete" ? { reason: "max_output_tokens" } : null,
    model,
    output: outcome.output,
    instructions: body.instructions ?? null,
    previous_response_id: body.previous_response_id ?? null,
    tools: tools.map((tool) => ({ description: null, parameters: null, strict: null, ...tool })),
    tool_choice: body.tool_choice ?? "auto",
    parallel_tool_calls: body.parallel_tool_calls ?? true,
    max_tool_calls: null,
    text: { format: { type: "text" }, ...body.text },
    reasoning: { effort: body.reasoning?.effort ?? null, summary: body.reasoning?.summary ?? null },
    ...sampling,
    top_logprobs: body.top_logprobs ?? 0,
    max_output_tokens: body.max_output_tokens ?? null,
    truncation: body.truncation ?? "auto",
    usage: outcome.statistics ? usageOf(outcome.statistics, outcome.reasoningTokens ?? 0) : null,
    metadata: body.metadata ?? {},
    user: body.user ?? null,
    safety_identifier: body.safety_identifier ?? null,
    prompt_cache_key: body.prompt_cache_key ?? null,
    service_tier: "default",
    store: isKept,
    background: false,
  } as const;
}

export type ResponseObject = ReturnType<typeof responseOf>;

const usageOf = ({ promptEvalCount, promptCachedCount, evalCount }: Statistics, reasoningTokens: number) => ({
  input_tokens: promptEvalCount,
  input_tokens_details: { cached_tokens: promptCachedCount, cache_write_tokens: 0 },
  output_tokens: evalCount,
  output_tokens_details: { reasoning_tokens: Math.min(reasoningTokens, evalCount) },
  total_tokens: promptEvalCount + evalCount,
});
