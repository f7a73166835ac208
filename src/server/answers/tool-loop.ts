/**
 * An answer in which the server runs calls of MCP tools: the model answers, its calls are run, and it answers again
 * with their results, for a bounded number of rounds. Results are outside text and are put behind the safety boundary.
 */
import { type Fields, messageOf } from "../../base/index.ts";
import { mcpName } from "../../runtime/mcp/names.ts";
import type { ChatRequest, Message, Statistics, ToolCall } from "../../runtime/portable.ts";
import { answerEvents, type AnswerEvent, type Answering, type DoneEvent, type Stage } from "./answer.ts";
import { closeOffers, type McpOffer, resultContent } from "./server-tools.ts";

/** Answers of the model for one request; in the last one it cannot call tools. */
const ROUNDS_MAX = 10;
/** Calls that are run after one answer of the model. */
const CALLS_MAX = 16;

/** The list of a server's tools, the beginning of a call, or its end. */
export type ToolEvent =
  | { readonly kind: "mcpList"; readonly offer: McpOffer }
  | { readonly kind: "mcpCall"; readonly label: string; readonly name: string; readonly arguments: Fields }
  | { readonly kind: "mcpResult"; readonly text: string; readonly isError: boolean };

export const isOfTool = (event: AnswerEvent | ToolEvent): event is ToolEvent => event.kind.startsWith("mcp");

interface LoopParts {
  readonly offers: readonly McpOffer[];
  readonly note: Answering["note"];
  /** Made anew for each answer of the model. */
  readonly stages: () => readonly Stage[];
  readonly onPrompt?: NonNullable<Answering["onPrompt"]>;
}

interface Called {
  readonly offer: McpOffer;
  readonly name: string;
  readonly call: ToolCall & { readonly id: string };
}

type Deps = Parameters<typeof answerEvents>[0];

/** If there are no offers, the answer of the model itself, event by event. */
export function answerWithTools(
  deps: Deps,
  request: ChatRequest,
  parts: LoopParts,
): AsyncGenerator<AnswerEvent | ToolEvent, void, void> {
  const { offers, stages, ...answering } = parts;
  if (offers.length > 0) return answerInRounds(deps, request, parts);
  return answerEvents(deps, request, { ...answering, stages: stages() });
}

/** Closes connections that were opened for the request. */
async function* answerInRounds(
  deps: Deps,
  request: ChatRequest,
  parts: LoopParts,
): AsyncGenerator<AnswerEvent | ToolEvent, void, void> {
  try {
    yield* rounds(deps, request, parts);
  } finally {
    await closeOffers(parts.offers);
  }
}

async function* rounds(
  deps: Deps,
  request: ChatRequest,
  { offers, stages, ...answering }: LoopParts,
): AsyncGenerator<AnswerEvent | ToolEvent, void, void> {
  const loop = new Loop(request, offers);
  for (let round = 1; ; round++) {
    const events = answerEvents(deps, loop.request(round), { ...answering, stages: stages() });
    for await (const event of events) {
      if (!loop.isListed) for (const offer of offers) yield { kind: "mcpList", offer };
      loop.isListed = true;
      if (loop.take(event)) yield event;
    }
    const done = loop.done();
    const results: Message[] = [];
    for (const [i, called] of loop.called.entries()) {
      const { offer, name, call } = called;
      const { arguments: args } = call.function;
      yield { kind: "mcpCall", label: offer.label, name, arguments: args };
      const result = i < CALLS_MAX ? await run(called, request.signal) : TOO_MANY;
      yield { kind: "mcpResult", ...result };
      results.push(resultMessage(called, result));
    }
    if (loop.endsWith(done, round)) return yield loop.last(done);
    loop.goOn(results);
  }
}

const TOO_MANY = { text: `the tool was not called: expected at most ${CALLS_MAX} calls at once`, isError: true };

/** Makes a call. A failure becomes its result, unless the client has gone. */
async function run({ offer, name, call }: Called, signal: AbortSignal): Promise<{ text: string; isError: boolean }> {
  try {
    return await offer.server.call(name, call.function.arguments, signal);
  } catch (error) {
    signal.throwIfAborted();
    return { text: messageOf(error), isError: true };
  }
}

function resultMessage({ offer, name, call }: Called, result: { text: string; isError: boolean }): Message {
  const content = resultContent(result, `${offer.label} ${name}`);
  return { role: "tool", content, tool_call_id: call.id, tool_name: call.function.name };
}

class Loop {
  readonly #request: ChatRequest;
  readonly #tools: ReadonlyMap<string, Pick<Called, "offer" | "name">>;
  #messages: readonly Message[];
  #text = "";
  #thinking = "";
  #hasOtherCalls = false;
  #done: DoneEvent | undefined;
  #total: Statistics | undefined;
  called: Called[] = [];
  isListed = false;

  constructor(request: ChatRequest, offers: readonly McpOffer[]) {
    this.#request = request;
    this.#messages = request.messages;
    const named = (offer: McpOffer) =>
      offer.tools.map(({ name }) => [mcpName(offer.label, name), { offer, name }] as const);
    this.#tools = new Map(offers.flatMap(named));
  }

  /** The model's next request. A demanded call is demanded once, and the token limit is that of all rounds. */
  request(round: number): ChatRequest {
    const { toolChoice, options, ...rest } = this.#request;
    const choice = round === ROUNDS_MAX ? "none" : round === 1 ? toolChoice : undefined;
    const left = this.#tokensLeft();
    return {
      ...rest,
      messages: this.#messages,
      options: left === undefined ? options : { ...options, num_predict: left },
      ...(choice === undefined ? {} : { toolChoice: choice }),
      isOutside: true,
    };
  }

  /** Returns true if the client gets the event unchanged. */
  take(event: AnswerEvent): boolean {
    if (event.kind === "done") this.#done = event;
    else if (event.kind === "text") this.#text += event.text;
    else if (event.kind === "thinking") this.#thinking += event.text;
    else {
      const tool = this.#tools.get(event.call.function.name);
      if (!tool) this.#hasOtherCalls = true;
      else if (event.kind === "toolCall") {
        this.called.push({ ...tool, call: { ...event.call, id: event.call.id ?? `call_${crypto.randomUUID()}` } });
      }
      return !tool;
    }
    return event.kind !== "done";
  }

  /** The end of the model's answer, whose tokens are counted. */
  done(): DoneEvent {
    const done = this.#done!; // answerEvents always ends with this event
    const { statistics } = done;
    if (statistics) this.#total = this.#total ? sum(this.#total, statistics) : statistics;
    return done;
  }

  /** True if the model does not answer again. */
  endsWith({ reason }: DoneEvent, round: number): boolean {
    const isOver = this.called.length === 0 || this.#hasOtherCalls || reason === "length" || round === ROUNDS_MAX;
    return isOver || this.#tokensLeft() === 0;
  }

  /** The last event of all rounds together. */
  last(done: DoneEvent): DoneEvent {
    const isCut = this.called.length > 0 && !this.#hasOtherCalls && this.#tokensLeft() === 0;
    return { ...done, ...(isCut ? { reason: "length" } : {}), ...(this.#total ? { statistics: this.#total } : {}) };
  }

  goOn(results: readonly Message[]): void {
    const answer: Message = {
      role: "assistant",
      content: this.#text,
      ...(this.#thinking === "" ? {} : { thinking: this.#thinking }),
      tool_calls: this.called.map(({ call }) => call),
    };
    this.#messages = [...this.#messages, answer, ...results];
    [this.#text, this.#thinking, this.called] = ["", "", []];
  }

  #tokensLeft(): number | undefined {
    const { num_predict: most } = this.#request.options;
    if (most === undefined || most < 0) return undefined;
    return Math.max(0, most - (this.#total?.evalCount ?? 0));
  }
}

const sum = (a: Statistics, b: Statistics): Statistics => ({
  totalNs: a.totalNs + b.totalNs,
  loadNs: a.loadNs + b.loadNs,
  promptEvalCount: a.promptEvalCount + b.promptEvalCount,
  promptCachedCount: a.promptCachedCount + b.promptCachedCount,
  promptEvalNs: a.promptEvalNs + b.promptEvalNs,
  evalCount: a.evalCount + b.evalCount,
  evalNs: a.evalNs + b.evalNs,
});
