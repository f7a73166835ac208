/**
 * An answer as the events of a Responses stream: output items in order, each added, filled and done, and the whole
 * response at the end. Events: https://platform.openai.com/docs/api-reference/responses-streaming
 */
import { assert, messageOf } from "../../base/index.ts";
import type { ChosenLogprob, CutCall, TokenLogprob, ToolCall } from "../../runtime/portable.ts";
import type { AnswerEvent } from "../answers/answer.ts";
import { argumentsText, customInput } from "../answers/custom-tools.ts";
import { withoutBlanks } from "../answers/blanks.ts";
import { makeId } from "../http/random-id.ts";
import {
  responseOf,
  type Head,
  type Item,
  type McpCallItem,
  type McpListItem,
  type OutputText,
  type ResponseObject,
} from "./response.ts";
import type { McpOffer } from "../answers/server-tools.ts";
import { isOfTool, type ToolEvent } from "../answers/tool-loop.ts";
import { isCustom, splitName } from "./tools.ts";

interface Unnumbered {
  readonly type: string;
  /** Set in the events that begin and end a stream. */
  readonly response?: ResponseObject;
  readonly [field: string]: unknown;
}

/** An event with its sequence number. */
export type StreamEvent = Unnumbered & { readonly sequence_number: number };

/** Turns one answer into events. */
export class ResponseWriter {
  readonly #head: Head;
  readonly #now: () => number;
  readonly #keep: (response: ResponseObject) => void;
  readonly #output: Item[] = [];
  readonly #stage = withoutBlanks();
  #isStarted = false;
  /** The last item of the output, while it can grow. */
  #open: Extract<Item, { type: "reasoning" | "message" }> | undefined;
  /** The call that the server is running. */
  #running: McpCallItem | undefined;
  #reasoningTokens = 0;
  /** Log probabilities of text that has not arrived yet. */
  #early: object[] = [];
  #sequence = 0;

  /**
   * @param now seconds since 1970
   * @param keep called with the whole response at its end
   */
  constructor(head: Head, now: () => number, keep: (response: ResponseObject) => void) {
    this.#head = head;
    this.#now = now;
    this.#keep = keep;
  }

  /**
   * Converts an event of the answer. Yields nothing before the model's first token, so that an earlier failure still
   * has its own status.
   */
  *write(said: AnswerEvent | ToolEvent): Generator<StreamEvent> {
    for (const event of isOfTool(said) ? [said] : this.#stage(said)) {
      if (!this.#isStarted) yield* this.#numbered(this.#start());
      this.#isStarted = true;
      yield* this.#numbered(this.#eventsOf(event));
    }
  }

  /** The event that ends a failed stream. */
  fail(error: unknown): StreamEvent {
    const failure = { code: "server_error", message: messageOf(error) };
    if (this.#open) this.#open.status = "incomplete";
    if (this.#running) this.#running.status = "incomplete";
    const response = responseOf(this.#head, { status: "failed", output: this.#output, error: failure });
    return { type: "response.failed", response, sequence_number: this.#sequence++ };
  }

  *#numbered(events: Iterable<Unnumbered>): Generator<StreamEvent> {
    for (const event of events) yield { ...event, sequence_number: this.#sequence++ };
  }

  *#start(): Generator<Unnumbered> {
    const response = responseOf(this.#head, { status: "in_progress", output: [] });
    yield { type: "response.created", response };
    yield { type: "response.in_progress", response };
  }

  *#eventsOf(event: AnswerEvent | ToolEvent): Generator<Unnumbered> {
    switch (event.kind) {
      case "thinking":
        return yield* this.#think(event.text);
      case "text":
        return yield* this.#say(event.text, event.logprobs ?? []);
      case "toolCall":
        return yield* this.#call(event.call, "completed");
      case "cutCall":
        return yield* this.#call(event.call, "incomplete");
      case "mcpList":
        return yield* this.#list(event.offer);
      case "mcpCall":
        return yield* this.#startCall(event);
      case "mcpResult":
        return yield* this.#endCall(event);
      case "done":
        return yield* this.#end(event);
      default:
        return event satisfies never;
    }
  }

  *#think(text: string): Generator<Unnumbered> {
    if (text === "") return;
    this.#reasoningTokens++; // an event is a token, or several that share a character
    if (this.#open?.type !== "reasoning") {
      yield* this.#close("completed");
      const id = makeId("rs");
      this.#open = { type: "reasoning", id, status: "in_progress", summary: [], encrypted_content: null };
      yield this.#added(this.#open);
      const part = { type: "summary_text", text: "" } as const;
      this.#open.summary.push({ ...part });
      yield this.#of(this.#open, { type: "response.reasoning_summary_part.added", summary_index: 0, part });
    }
    const [part] = this.#open.summary;
    if (part) part.text += text;
    yield this.#of(this.#open, { type: "response.reasoning_summary_text.delta", summary_index: 0, delta: text });
  }

  *#say(text: string, chosen: readonly ChosenLogprob[]): Generator<Unnumbered> {
    this.#early.push(...chosen.map(logprobOf));
    if (text === "") return;
    if (this.#open?.type !== "message") {
      yield* this.#close("completed");
      this.#open = { type: "message", id: makeId("msg"), status: "in_progress", role: "assistant", content: [] };
      yield this.#added(this.#open);
      this.#open.content.push(outputText());
      yield this.#of(this.#open, { type: "response.content_part.added", content_index: 0, part: outputText() });
    }
    const logprobs = this.#early.splice(0);
    const [part] = this.#open.content;
    if (part) part.text += text;
    part?.logprobs.push(...logprobs);
    yield this.#of(this.#open, { type: "response.output_text.delta", content_index: 0, delta: text, logprobs });
  }

  *#call(
    { id, function: { name, arguments: args } }: ToolCall | CutCall,
    status: "completed" | "incomplete",
  ): Generator<Unnumbered> {
    yield* this.#close("completed");
    const { tools } = this.#head;
    const called = { status: "in_progress", call_id: id ?? makeId("call"), ...splitName(name, tools) } as const;
    const item: Item = isCustom(name, tools)
      ? { type: "custom_tool_call", id: makeId("ctc"), ...called, input: "" }
      : { type: "function_call", id: makeId("fc"), ...called, arguments: "" };
    yield this.#added(item);
    if (item.type === "custom_tool_call") {
      item.input = customInput(args);
      yield this.#of(item, { type: "response.custom_tool_call_input.delta", delta: item.input });
      yield this.#of(item, { type: "response.custom_tool_call_input.done", input: item.input });
    } else {
      item.arguments = argumentsText(args);
      const done = { name: item.name, arguments: item.arguments };
      yield this.#of(item, { type: "response.function_call_arguments.delta", delta: item.arguments });
      yield this.#of(item, { type: "response.function_call_arguments.done", ...done });
    }
    item.status = status;
    yield this.#done(item);
  }

  *#list({ label, tools }: McpOffer): Generator<Unnumbered> {
    const item: McpListItem = {
      type: "mcp_list_tools",
      id: makeId("mcpl"),
      server_label: label,
      tools: [],
      error: null,
    };
    yield this.#added(item);
    yield this.#of(item, { type: "response.mcp_list_tools.in_progress" });
    item.tools = tools.map(({ name, description, inputSchema }) => ({
      name,
      description,
      input_schema: inputSchema,
      annotations: null,
    }));
    yield this.#of(item, { type: "response.mcp_list_tools.completed" });
    yield this.#done(item);
  }

  *#startCall(event: Extract<ToolEvent, { kind: "mcpCall" }>): Generator<Unnumbered> {
    yield* this.#close("completed");
    const about = { server_label: event.label, name: event.name, approval_request_id: null };
    const empty = { arguments: "", output: null, error: null };
    const item: McpCallItem = { type: "mcp_call", id: makeId("mcp"), status: "in_progress", ...about, ...empty };
    this.#running = item;
    yield this.#added(item);
    yield this.#of(item, { type: "response.mcp_call.in_progress" });
    item.arguments = argumentsText({ ...event.arguments });
    yield this.#of(item, { type: "response.mcp_call_arguments.delta", delta: item.arguments });
    yield this.#of(item, { type: "response.mcp_call_arguments.done", arguments: item.arguments });
  }

  *#endCall({ text, isError }: Extract<ToolEvent, { kind: "mcpResult" }>): Generator<Unnumbered> {
    const item = this.#running;
    assert(item, "a result without a call");
    this.#running = undefined;
    item.status = isError ? "failed" : "completed";
    item[isError ? "error" : "output"] = text;
    yield this.#of(item, { type: `response.mcp_call.${item.status}` });
    yield this.#done(item);
  }

  *#end({ reason, statistics }: Extract<AnswerEvent, { kind: "done" }>): Generator<Unnumbered> {
    const status = reason === "length" ? "incomplete" : "completed";
    yield* this.#close(status);
    const response = responseOf(this.#head, {
      status,
      output: this.#output,
      reasoningTokens: this.#reasoningTokens,
      ...(status === "completed" ? { completedAt: this.#now() } : {}),
      ...(statistics ? { statistics } : {}),
    });
    this.#keep(response);
    yield { type: `response.${status}`, response };
  }

  *#close(status: "completed" | "incomplete"): Generator<Unnumbered> {
    const item = this.#open;
    if (!item) return;
    this.#open = undefined;
    item.status = status;
    if (item.type === "reasoning") {
      const [part] = item.summary;
      const at = { summary_index: 0 };
      yield this.#of(item, { type: "response.reasoning_summary_text.done", ...at, text: part?.text });
      yield this.#of(item, { type: "response.reasoning_summary_part.done", ...at, part });
      if (this.#head.body.include?.includes("reasoning.encrypted_content")) {
        item.encrypted_content = part?.text ?? null; // plain text, because there is nothing to hide from its owner
      }
    } else {
      const [part] = item.content;
      const at = { content_index: 0 };
      const { text, logprobs } = part ?? outputText();
      yield this.#of(item, { type: "response.output_text.done", ...at, text, logprobs });
      yield this.#of(item, { type: "response.content_part.done", ...at, part });
    }
    yield this.#done(item);
  }

  /** Adds an item to the output. All events of an item come while it is the last one. */
  #added(item: Item): Unnumbered {
    this.#output.push(item);
    return { type: "response.output_item.added", output_index: this.#index(), item: structuredClone(item) };
  }

  #done(item: Item): Unnumbered {
    return { type: "response.output_item.done", output_index: this.#index(), item };
  }

  #of(item: Item, event: Unnumbered): Unnumbered {
    return { ...event, item_id: item.id, output_index: this.#index() };
  }

  #index(): number {
    return this.#output.length - 1;
  }
}

const outputText = (): OutputText => ({ type: "output_text", text: "", annotations: [], logprobs: [] });

function logprobOf({ top, ...chosen }: ChosenLogprob): object {
  const entry = ({ token, bytes, logprob }: TokenLogprob): object => ({ token, bytes, logprob });
  return { ...entry(chosen), top_logprobs: top.map(entry) };
}
