/**
 * An answer as the events of an Anthropic stream: content blocks in order, each opened, filled and closed. The whole
 * message is the sum of these events. Events: https://docs.anthropic.com/en/docs/build-with-claude/streaming
 */
import { createHash, type Hash } from "node:crypto";
import { fieldsOfPrefix } from "../../runtime/index.ts";
import type { CutCall, Statistics, ToolCall } from "../../runtime/portable.ts";
import type { AnswerEvent } from "../answers/answer.ts";
import { argumentsText } from "../answers/custom-tools.ts";
import { isOfTool, type ToolEvent } from "../answers/tool-loop.ts";
import { withoutBlanks } from "../answers/blanks.ts";
import { makeId } from "../http/random-id.ts";

export type Block =
  | { type: "text"; text: string }
  | { type: "thinking"; thinking: string; signature: string }
  | { type: "tool_use"; id: string; name: string; input: Record<string, unknown> }
  | { type: "mcp_tool_use"; id: string; name: string; server_name: string; input: Record<string, unknown> }
  | { type: "mcp_tool_result"; tool_use_id: string; is_error: boolean; content: { type: "text"; text: string }[] };

type Delta =
  | { readonly type: "text_delta"; readonly text: string }
  | { readonly type: "thinking_delta"; readonly thinking: string }
  | { readonly type: "signature_delta"; readonly signature: string }
  | { readonly type: "input_json_delta"; readonly partial_json: string };

export type StopReason = "end_turn" | "max_tokens" | "stop_sequence" | "tool_use";

interface Usage {
  readonly input_tokens: number;
  readonly cache_creation_input_tokens: number;
  readonly cache_read_input_tokens: number;
  readonly output_tokens: number;
}

export interface Reply {
  readonly id: string;
  readonly type: "message";
  readonly role: "assistant";
  readonly model: string;
  readonly content: readonly Block[];
  readonly stop_reason: StopReason | null;
  readonly stop_sequence: string | null;
  readonly usage: Usage;
}

interface Stop {
  readonly stop_reason: StopReason;
  readonly stop_sequence: string | null;
}

export type StreamEvent =
  | { readonly type: "message_start"; readonly message: Reply }
  | { readonly type: "ping" }
  | { readonly type: "content_block_start"; readonly index: number; readonly content_block: Block }
  | { readonly type: "content_block_delta"; readonly index: number; readonly delta: Delta }
  | { readonly type: "content_block_stop"; readonly index: number }
  | { readonly type: "message_delta"; readonly delta: Stop; readonly usage: Usage }
  | { readonly type: "message_stop" };

export interface Head {
  readonly id: string;
  readonly model: string;
  /** Counts of prompt tokens, cached and not; read once the answer begins. */
  readonly prompt: () => Pick<Statistics, "promptEvalCount" | "promptCachedCount">;
  /** The request's stop sequences. Other stop strings of the model end its turn. */
  readonly stopSequences: readonly string[];
}

/** An event of an answer, or of a tool that the server runs. */
export type Said = AnswerEvent | ToolEvent;

/** Converts an event of an answer to stream events. */
type Steps = (said: Said) => Iterable<StreamEvent>;

/** Yields nothing before the model's first token, so that an earlier failure still has its own status. */
export function streamSteps(head: Head): Steps {
  const blocks = new Blocks();
  const stage = withoutBlanks();
  let started = false;
  return function* (said) {
    for (const event of isOfTool(said) ? [said] : stage(said)) {
      if (!started) yield* startOf(head);
      started = true;
      yield* blocks.of(event);
      if (event.kind !== "done") continue;
      const stop = stopOf(event, { called: blocks.called, stopSequences: head.stopSequences });
      yield { type: "message_delta", delta: stop, usage: usageOf(event.statistics) };
      yield { type: "message_stop" };
    }
  };
}

function* startOf({ id, model, prompt }: Head): Generator<StreamEvent> {
  const start = { id, type: "message", role: "assistant", model, content: [] } as const;
  const message = {
    ...start,
    stop_reason: null,
    stop_sequence: null,
    usage: usageOf(prompt()),
  };
  yield { type: "message_start", message };
  yield { type: "ping" };
}

/** The open block, and its content so far. */
class Blocks {
  called = false;
  /** Id of the call that the server is running. */
  #running = "";
  #index = -1;
  #open: { readonly type: "text" } | { readonly type: "thinking"; readonly hash: Hash } | undefined;

  *of(event: Said): Generator<StreamEvent> {
    switch (event.kind) {
      case "thinking":
        return yield* this.#think(event.text);
      case "text":
        return yield* this.#say(event.text);
      case "toolCall":
        this.called = true;
        return yield* this.#call(event.call);
      case "cutCall":
        this.called = false; // the stop reason is then `max_tokens`
        return yield* this.#call(event.call);
      case "mcpList":
        return;
      case "mcpCall":
        return yield* this.#callServer(event);
      case "mcpResult":
        return yield* this.#result(event);
      case "done":
        return yield* this.#close();
      default:
        return event satisfies never;
    }
  }

  *#think(text: string): Generator<StreamEvent> {
    if (text === "") return;
    if (this.#open?.type !== "thinking") {
      yield* this.#close();
      yield this.#start({ type: "thinking", thinking: "", signature: "" });
      this.#open = { type: "thinking", hash: createHash("sha256") };
    }
    this.#open.hash.update(text);
    yield this.#delta({ type: "thinking_delta", thinking: text });
  }

  *#say(text: string): Generator<StreamEvent> {
    if (text === "") return;
    if (this.#open?.type !== "text") {
      yield* this.#close();
      yield this.#start({ type: "text", text: "" });
      this.#open = { type: "text" };
    }
    yield this.#delta({ type: "text_delta", text });
  }

  *#call({ id = makeId("toolu"), function: { name, arguments: input } }: ToolCall | CutCall): Generator<StreamEvent> {
    yield* this.#close();
    yield this.#start({ type: "tool_use", id, name, input: {} });
    yield this.#delta({ type: "input_json_delta", partial_json: argumentsText(input) });
    yield this.#stop();
  }

  *#callServer({ label, name, arguments: input }: Extract<ToolEvent, { kind: "mcpCall" }>): Generator<StreamEvent> {
    yield* this.#close();
    this.#running = makeId("mcptoolu");
    yield this.#start({ type: "mcp_tool_use", id: this.#running, name, server_name: label, input: {} });
    yield this.#delta({ type: "input_json_delta", partial_json: argumentsText(input) });
    yield this.#stop();
  }

  *#result({ text, isError }: Extract<ToolEvent, { kind: "mcpResult" }>): Generator<StreamEvent> {
    const content = text === "" ? [] : [{ type: "text" as const, text }];
    yield this.#start({ type: "mcp_tool_result", tool_use_id: this.#running, is_error: isError, content });
    yield this.#stop();
  }

  /** Clients return thinking only with a signature: this one is a digest of the text and is never verified. */
  *#close(): Generator<StreamEvent> {
    if (!this.#open) return;
    if (this.#open.type === "thinking") {
      yield this.#delta({ type: "signature_delta", signature: this.#open.hash.digest("base64") });
    }
    yield this.#stop();
    this.#open = undefined;
  }

  #start(block: Block): StreamEvent {
    this.#index++;
    return { type: "content_block_start", index: this.#index, content_block: block };
  }

  #stop(): StreamEvent {
    return { type: "content_block_stop", index: this.#index };
  }

  #delta(delta: Delta): StreamEvent {
    return { type: "content_block_delta", index: this.#index, delta };
  }
}

type Done = Extract<AnswerEvent, { kind: "done" }>;

function stopOf({ reason, stopSequence }: Done, about: { called: boolean; stopSequences: readonly string[] }): Stop {
  if (about.called) return { stop_reason: "tool_use", stop_sequence: null };
  if (reason === "length") return { stop_reason: "max_tokens", stop_sequence: null };
  if (stopSequence !== undefined && about.stopSequences.includes(stopSequence)) {
    return { stop_reason: "stop_sequence", stop_sequence: stopSequence };
  }
  return { stop_reason: "end_turn", stop_sequence: null };
}

/** `input_tokens` counts only uncached tokens: the three counts add up to the prompt. */
const usageOf = ({ promptEvalCount = 0, promptCachedCount = 0, evalCount = 0 }: Partial<Statistics> = {}): Usage => ({
  input_tokens: promptEvalCount - promptCachedCount,
  cache_creation_input_tokens: 0,
  cache_read_input_tokens: promptCachedCount,
  output_tokens: evalCount,
});

/** The message that a stream adds up to. */
export async function wholeMessage(answer: AsyncIterable<Said>, steps: Steps): Promise<Reply | undefined> {
  const events: StreamEvent[] = [];
  for await (const said of answer) events.push(...steps(said));
  return sum(events);
}

function sum(events: readonly StreamEvent[]): Reply | undefined {
  let reply: Reply | undefined;
  const content: Block[] = [];
  let input = "";
  for (const event of events) {
    const last = content.at(-1);
    switch (event.type) {
      case "message_start":
        reply = { ...event.message, content };
        break;
      case "content_block_start":
        content.push({ ...event.content_block });
        break;
      case "content_block_delta":
        if (event.delta.type === "input_json_delta") input += event.delta.partial_json;
        else if (last) extend(last, event.delta);
        break;
      case "content_block_stop":
        if (last?.type === "tool_use" || last?.type === "mcp_tool_use") last.input = fieldsOfPrefix(input) ?? {}; // partial for a cut call
        input = "";
        break;
      case "message_delta":
        if (reply) reply = { ...reply, ...event.delta, usage: event.usage };
        break;
      case "ping":
      case "message_stop":
        break;
      default:
        event satisfies never;
    }
  }
  return reply;
}

function extend(block: Block, delta: Delta): void {
  if (block.type === "text" && delta.type === "text_delta") block.text += delta.text;
  else if (block.type === "thinking" && delta.type === "thinking_delta") block.thinking += delta.thinking;
  else if (block.type === "thinking" && delta.type === "signature_delta") block.signature = delta.signature;
}
