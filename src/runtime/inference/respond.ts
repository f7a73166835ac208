/**
 * Turns a runner's events into the events of an answer: separates thinking from text, extracts tool calls, and applies
 * the grammar of a schema or a required tool.
 *
 * A grammar cannot begin before thinking ends. So a model that thinks first answers freely up to the end of its
 * thoughts, and is then asked again, with the thoughts in the prompt and under the grammar; its computed prefix is
 * still cached.
 */
import { nowNs } from "../../base/index.ts";
import type { AnswerSettings, PromptInput, Ending, LazyGrammar, ThinkingTags } from "../../engine/index.ts";
import type { TemplateFacts } from "../../engine/text/index.ts";
import type { CallGrammars } from "./call-grammars.ts";
import { forcedCalls, forcedCallSchema, isOffered, namingTools } from "./forced-call.ts";
import type { GenerationPass } from "./infer.ts";
import type { Loaded } from "./lease.ts";
import { makeAnswerParser } from "../parse/answer-parser.ts";
import type { ParsedEvent, TextParser, ToolFormat } from "../parse/format.ts";
import { detectToolFormat, toolFormats, type ToolFormatName } from "../parse/index.ts";
import { makePlainParser } from "../parse/plain.ts";
import { makeThinkingSplitter } from "../parse/thinking.ts";
import { isReport, type RunnerEvent } from "../processes/runner-client.ts";
import type { InferenceEvent, Statistics, Think, Tool } from "../requests/runtime.ts";

type TextEvent = Extract<RunnerEvent, { kind: "text" }>;
type DoneEvent = Extract<RunnerEvent, { kind: "done" }>;
type PromptEvent = Extract<RunnerEvent, { kind: "prompt" }>;

/** A request to a model, and the form of its answer. */
export interface AnswerRequest {
  readonly asked: PromptInput;
  readonly settings: AnswerSettings;
  /** True if `done` carries the ids of prompt and answer. */
  readonly wantsContext: boolean;
}

export interface OutputFormat {
  /** Facts on the template that renders the prompt. */
  readonly facts: TemplateFacts;
  readonly think: Think | undefined;
  /** Tools that the model may call; empty: calls stay text. */
  readonly tools: readonly Tool[];
  /** An answer may have several calls; absent: true. */
  readonly isParallel?: boolean | undefined;
  /** Tools of which one must be called. */
  readonly required?: readonly Tool[] | undefined;
  readonly callGrammars: CallGrammars;
}

/** Rules for reading a model's answers. */
interface ParserSettings {
  readonly formatName: ToolFormatName;
  readonly format: ToolFormat;
  readonly tags: ThinkingTags | undefined;
}

/** An answer whose text is passed on unchanged. */
export function passThrough(loaded: Loaded, question: AnswerRequest): GenerationPass {
  const tell = teller(loaded, question);
  return { request: requestOf(question), read: (event) => [tell(event)] };
}

/** An answer that is parsed by the model's template. */
export function respond(loaded: Loaded, question: AnswerRequest, shape: OutputFormat): GenerationPass {
  const formatName = formatNameOf(shape.facts);
  const format: ToolFormat = toolFormats[formatName];
  const tags = format.marks ? format.marks.thinking : shape.facts.thinking;
  const visible = [...(tags ? [tags.open, tags.close] : []), ...(shape.tools.length > 0 ? format.markup : [])];
  const settings = { ...question.settings, visible: format.marks ? format.markup : visible };
  const asked = { ...question, settings };
  const reading = { ...shape, formatName, format, tags };
  return shape.required || settings.format || settings.grammar
    ? constrained(loaded, asked, reading)
    : free(loaded, asked, reading);
}

/** The format of the model's parser, else the one that its template shows. */
function formatNameOf({ format, source }: TemplateFacts): ToolFormatName {
  const names = Object.keys(toolFormats) as ToolFormatName[]; // the keys of a literal
  return names.find((name) => name === format) ?? detectToolFormat(source);
}

const requestOf = ({ asked, settings }: AnswerRequest): GenerationPass["request"] => ({ asked, ...settings });

/** Makes a converter from the runner's events to the runtime's. */
function teller(
  { startedNs, loadNs }: Loaded,
  { wantsContext }: AnswerRequest,
): (event: RunnerEvent) => InferenceEvent {
  return (event) => {
    if (event.kind === "promptLogprobs") return { kind: event.kind, tokens: event.tokens };
    if (isReport(event)) {
      const { tokens: promptEvalCount, cached: promptCachedCount, evalNs: promptEvalNs } = event;
      const counts = { promptEvalCount, promptCachedCount, promptEvalNs };
      return event.kind === "prompt"
        ? { kind: "prompt", ...counts }
        : { kind: "progress", ...counts, processed: event.processed };
    }
    if (event.kind === "text") {
      return { kind: "text", text: event.text, ...(event.logprobs ? { logprobs: event.logprobs } : {}) };
    }
    const { reason, statistics, stopSequence } = event;
    return {
      kind: "done",
      reason,
      statistics: { ...statistics, loadNs, totalNs: nowNs() - startedNs },
      ...(wantsContext ? { context: Array.from(event.tokens) } : {}),
      ...(event.truncated ? { truncated: true } : {}),
      ...(stopSequence === undefined ? {} : { stopSequence }),
    };
  };
}

/** Returns whether a prompt ends inside thinking. */
const isInside = ({ end = "" }: { end?: string | undefined }, tags: ThinkingTags | undefined): boolean =>
  tags !== undefined && end.endsWith(tags.open);

/** An answer without a grammar. */
function free(loaded: Loaded, question: AnswerRequest, shape: OutputFormat & ParserSettings): GenerationPass {
  const tell = teller(loaded, question);
  let parser: TextParser | undefined;
  const calls = callsOf(question, shape);
  return {
    request: { ...requestOf(question), ...(calls ? { calls } : {}) },
    read(event) {
      if (event.kind === "prompt") parser = freeParser(shape, event.end);
      if (!parser || isReport(event)) return [tell(event)];
      if (event.kind === "text") return withLogprobs(parser.push(event.text), event);
      const last = parser.end(event.reason === "length").map((each) => orText(each, shape.tools));
      return [...last.map(toEvent), tell(event)];
    },
  };
}

/** The grammars of the calls that a model may open, and the end of thoughts; undefined: the request needs neither. */
function callsOf(
  { settings: { options } }: AnswerRequest,
  { tools, formatName, format, tags, isParallel = true, callGrammars }: OutputFormat & ParserSettings,
): LazyGrammar | undefined {
  const isLimited = options.thinking_budget >= 0;
  const thinking = format.marks && !isLimited ? undefined : tags;
  const calls = tools.length > 0 ? callGrammars({ format: formatName, tools, isParallel }) : undefined;
  if (calls) return thinking ? { ...calls, thinking } : calls;
  return thinking && isLimited ? thoughtsOnly(thinking) : undefined;
}

/** For requests without tools: limits thoughts and allows any answer. */
const thoughtsOnly = (thinking: ThinkingTags): LazyGrammar => ({ grammars: [], triggers: [], thinking, once: false });

function freeParser(
  { tools, facts, format, tags }: OutputFormat & ParserSettings,
  end: string | undefined,
): TextParser | undefined {
  if (format.marks) return format.makeParser(tools, end);
  const isOpen = isInside({ end }, tags);
  return makeAnswerParser({ tags, isOpen, calls: tools.length > 0 ? callParser(facts, format, tools) : undefined });
}

function callParser({ callTag }: TemplateFacts, format: ToolFormat, tools: readonly Tool[]): TextParser {
  const isUnknown = format === toolFormats.plain && callTag !== undefined;
  return isUnknown ? makePlainParser(tools, callTag) : format.makeParser(tools);
}

/** An answer under a grammar: a call where one is required, else a value, or a call that the model opens instead. */
function constrained(loaded: Loaded, question: AnswerRequest, shape: OutputFormat & ParserSettings): GenerationPass {
  const { required, format, tags, think, tools } = shape;
  const forced = required && { ...format.forced, schema: forcedCallSchema(required, format.forced) };
  const open = forced ? forced.open : (format.marks?.answer ?? "");
  const next = format.marks?.next ?? "\n\n";
  const answer = (asked: PromptInput, after?: ThinkingResult): GenerationPass => {
    const { options } = question.settings;
    const settings = {
      ...question.settings,
      options: { ...options, num_predict: after?.predictMax ?? options.num_predict, ...(forced ? { stop: [] } : {}) },
      ...(forced ? { format: forced.schema } : {}),
    };
    return underGrammar(loaded, { ...question, asked, settings }, { after, required });
  };
  const begin = (promptOf: (end: string) => PromptInput, after?: ThinkingResult): GenerationPass =>
    required || tools.length === 0
      ? answer(promptOf(open), after)
      : callOr(loaded, { ...question, asked: promptOf("") }, shape, {
          after,
          otherwise: (prompt) => answer(promptOf(open), prompt),
        });
  if (!tags) return begin((text) => endedBy(question.asked, { text }));
  if (think === false) {
    const inside = { open: tags.open, close: tags.close + next };
    return begin((text) => endedBy(question.asked, { text, inside }));
  }
  const id = loaded.lease.runner.newId();
  return thinking(loaded, question, {
    id,
    tags,
    answer: (thought) => {
      const said = thought.text === undefined ? "" : thought.text + tags.close + next;
      return begin((text) => ({ kind: "after", id, text: said + text }), thought);
    },
  });
}

function endedBy(asked: PromptInput, ending: Ending): PromptInput {
  return asked.kind === "gap" || asked.kind === "after" || ending.text + (ending.inside?.close ?? "") === ""
    ? asked
    : { ...asked, ending };
}

interface CallAttempt {
  /** The model's thoughts from an earlier pass, if any. */
  readonly after: ThinkingResult | undefined;
  /** The pass of a model that opens no call. @param prompt the thoughts, or what is counted of the prompt */
  otherwise(prompt: ThinkingResult): GenerationPass;
}

/** An object whose first key no call in JSON has; parsers of such calls would hold it back to its end. */
const VALUE_BEGUN = /^\s*\{\s*"(?!(?:name|tool_name|type|function|id|arguments|parameters)")(?:[^"\\]|\\.)*"/;

/**
 * Lets a model that may call tools open a call in place of a value. Its first words decide: a grammar for both would
 * have a model that wants to answer in plain text call a tool again.
 */
function callOr(
  loaded: Loaded,
  question: AnswerRequest,
  shape: OutputFormat & ParserSettings,
  { after, otherwise }: CallAttempt,
): GenerationPass {
  const { format: _, grammar: __, ...settings } = question.settings;
  const predictMax = after?.predictMax ?? settings.options.num_predict;
  const asked = { ...question, settings: { ...settings, options: { ...settings.options, num_predict: predictMax } } };
  const pass = free(loaded, asked, { ...shape, tags: shape.format.marks && shape.tags });
  let result = after ?? { text: undefined, predictMax, statistics: undefined };
  let held: InferenceEvent[] = [];
  let [text, isCall, isOver] = ["", false, false];
  return {
    request: pass.request,
    isOver: () => isOver,
    next: () => (isCall ? undefined : otherwise(result)),
    read(event) {
      const events = pass.read(event).filter((each) => !after || !isReport(each));
      if (event.kind === "prompt" && !after) result = { ...result, statistics: countsOf(event) };
      if (isReport(event)) return events;
      isCall ||= events.some(({ kind }) => kind === "toolCall" || kind === "cutCall");
      held = [...held, ...events.map((each) => (each.kind === "done" ? withThinking(each, after?.statistics) : each))];
      if (event.kind === "text") text += event.text;
      const isText = VALUE_BEGUN.test(text) || held.some((each) => each.kind === "text" && each.text.trim() !== "");
      isOver = !isCall && isText;
      return isCall ? held.splice(0) : [];
    },
  };
}

/** The statistics of a pass whose tokens do not count. */
const countsOf = ({ tokens, cached, evalNs }: PromptEvent): Statistics => ({
  promptEvalCount: tokens,
  promptCachedCount: cached,
  promptEvalNs: evalNs,
  evalCount: 0,
  evalNs: 0,
  loadNs: 0,
  totalNs: 0,
});

interface ThinkingResult {
  /** Undefined: the model answered without thinking. */
  readonly text: string | undefined;
  /** Tokens left for the answer; negative: unlimited. */
  readonly predictMax: number;
  /** Statistics of the thinking pass, if it counts. */
  readonly statistics: Statistics | undefined;
}

interface Thinking {
  /** Id of the request whose prompt the answer continues. */
  readonly id: number;
  readonly tags: ThinkingTags;
  readonly answer: (thought: ThinkingResult) => GenerationPass;
}

/** Lets a model think before it answers under a grammar. */
function thinking(loaded: Loaded, question: AnswerRequest, { id, tags, answer }: Thinking): GenerationPass {
  const { options } = question.settings;
  const { format: _, grammar: __, ...settings } = question.settings;
  const unthought: ThinkingResult = { text: undefined, predictMax: options.num_predict, statistics: undefined };
  const tell = teller(loaded, { ...question, wantsContext: false });
  let [text, isOpen, isOver] = ["", false, false];
  let splitter = makeThinkingSplitter(tags, false);
  let thought: ThinkingResult | undefined;

  const end = (event: DoneEvent): InferenceEvent[] => {
    const { reason, stopSequence, statistics } = event;
    const isStopped = reason === "length" || (stopSequence !== undefined && stopSequence !== tags.close);
    const last = isStopped ? [] : splitter.push(tags.close); // the stop string consumed it
    const thoughts = [...last, ...splitter.end()].filter(isThinking).map(toEvent);
    const predictMax = options.num_predict > 0 ? options.num_predict - statistics.evalCount : options.num_predict;
    const done = tell(event);
    if (isStopped || predictMax === 0) return [...thoughts, done];
    const began = isOpen || text.trimStart().startsWith(tags.open);
    const took = done.kind === "done" ? done.statistics : undefined;
    thought = began ? { text, predictMax, statistics: took } : unthought;
    return thoughts;
  };

  return {
    request: {
      id,
      holds: true,
      asked: question.asked,
      ...settings,
      ...(options.thinking_budget < 0 ? {} : { calls: thoughtsOnly(tags) }),
      options: { ...options, stop: [...options.stop, tags.close] },
    },
    isOver: () => isOver,
    next: () => thought && answer(thought),
    read(event) {
      if (event.kind === "prompt") {
        isOpen = isInside(event, tags);
        splitter = makeThinkingSplitter(tags, isOpen);
        return [tell(event)];
      }
      if (isReport(event)) return [tell(event)];
      if (event.kind === "done") return end(event);
      text += event.text;
      const found = splitter.push(event.text);
      if (!found.some(({ kind }) => kind === "text")) return withLogprobs(found, event);
      thought = unthought; // the model answers at once, but without the grammar
      isOver = true;
      return [];
    },
  };
}

const isThinking = (event: ParsedEvent) => event.kind === "thinking";

/** @param about.after the model's thoughts from an earlier pass, if any */
function underGrammar(
  loaded: Loaded,
  question: AnswerRequest,
  { after, required }: { after: ThinkingResult | undefined; required: readonly Tool[] | undefined },
): GenerationPass {
  const tell = teller(loaded, question);
  let text = "";
  return {
    request: requestOf(question),
    ...(required ? { explain: namingTools } : {}),
    read(event) {
      // the prompt without thoughts is out already
      if (isReport(event)) return after ? [] : [tell(event)];
      if (event.kind === "done") {
        const calls = required ? forcedCalls(text, required) : [];
        return [...calls.map(toEvent), withThinking(tell(event), after?.statistics)];
      }
      if (!required) return [tell(event)];
      text += event.text;
      return event.logprobs ? [{ kind: "text", text: "", logprobs: event.logprobs }] : [];
    },
  };
}

/** Turns a cut call with an unknown name into text: the name may be partial. */
const orText = (event: ParsedEvent, tools: readonly Tool[]): ParsedEvent =>
  event.kind === "cutCall" && !isOffered(event.name, tools) ? { kind: "text", text: event.text } : event;

/** Adds the thinking pass to the statistics of the answer. */
function withThinking(event: InferenceEvent, thinking: Statistics | undefined): InferenceEvent {
  if (event.kind !== "done" || !event.statistics || !thinking) return event;
  return { ...event, statistics: sum(thinking, event.statistics) };
}

const sum = (thinking: Statistics, rest: Statistics): Statistics => ({
  ...rest,
  promptEvalCount: thinking.promptEvalCount,
  promptCachedCount: thinking.promptCachedCount,
  promptEvalNs: thinking.promptEvalNs + rest.promptEvalNs,
  evalCount: thinking.evalCount + rest.evalCount,
  evalNs: thinking.evalNs + rest.evalNs,
});

/** Log-probabilities are emitted at once, even while the parser holds back the text. */
function withLogprobs(found: readonly ParsedEvent[], { logprobs }: TextEvent): InferenceEvent[] {
  const events = found.map(toEvent);
  return logprobs ? [{ kind: "text", text: "", logprobs }, ...events] : events;
}

function toEvent(event: ParsedEvent): InferenceEvent {
  switch (event.kind) {
    case "toolCall":
      return { kind: "toolCall", call: { function: { name: event.name, arguments: event.arguments } } };
    case "cutCall":
      return {
        kind: "cutCall",
        call: { function: { name: event.name, arguments: event.arguments }, text: event.text },
      };
    default:
      return event;
  }
}
