/**
 * From a rendered prompt to the events of an answer: thinking told apart from text, tool calls taken out of it, and
 * what a schema or a required tool demands held to.
 *
 * A grammar cannot begin before thinking ends. So a model that thinks first answers freely up to the end of its
 * thoughts, and is then asked again, with them in the prompt and under the grammar; what it computed is still cached.
 */
import { AppError } from "../base/errors.ts";
import { toolCallTag } from "../template/go-prompt.ts";
import type { PromptTemplate } from "../template/prompt.ts";
import { thinkingTagsOf, type ThinkingTags } from "../template/thinking.ts";
import { answer, samplingOptions, type Loaded, type Question } from "./answer.ts";
import { forcedCallSchema } from "./forced-call.ts";
import { makeAnswerParser } from "./parse/answer-parser.ts";
import type { ParsedEvent, TextParser, ToolFormat } from "./parse/format.ts";
import { detectToolFormat, toolFormats } from "./parse/index.ts";
import { callsInJson } from "./parse/json-calls.ts";
import { makePlainParser } from "./parse/plain.ts";
import { makeThinkingSplitter } from "./parse/thinking.ts";
import type { InferenceEvent, Statistics, Think, Tool } from "./runtime.ts";

type Events = AsyncGenerator<InferenceEvent, void, void>;
type DoneEvent = Extract<InferenceEvent, { kind: "done" }>;

export interface Shape {
  /** What rendered the prompt. */
  readonly template: PromptTemplate;
  readonly think: Think | undefined;
  /** What the model may call; none: calls are text. */
  readonly tools: readonly Tool[];
  /** One of these must be called. */
  readonly required?: readonly Tool[] | undefined;
}

/** Asks a model and reads its answer. The last event is `done`. Throws what `answer` does. */
export function respond(loaded: Loaded, question: Question, shape: Shape): Events {
  const format: ToolFormat = toolFormats[detectToolFormat(shape.template.source)];
  const tags = format.marks ?? thinkingTagsOf(shape.template);
  const reading: Reading = { format, tags, isOpen: tags !== undefined && endsWith(question.prompt, tags.open) };
  const visible = [...(tags ? [tags.open, tags.close] : []), ...(shape.tools.length > 0 ? format.markup : [])];
  const asked = { ...question, visible: format.marks ? format.markup : visible };
  return shape.required || question.format
    ? constrained(loaded, asked, { ...shape, ...reading })
    : parsed(answer(loaded, asked), freeParser(shape, reading));
}

/** How a model's answers are to be read. */
interface Reading {
  readonly format: ToolFormat;
  readonly tags: ThinkingTags | undefined;
  /** Whether the prompt ends inside thinking. */
  readonly isOpen: boolean;
}

const endsWith = (prompt: string, tag: string): boolean => prompt.trimEnd().endsWith(tag);

function freeParser({ template, tools }: Shape, { format, tags, isOpen }: Reading): TextParser | undefined {
  if (format.marks) return format.makeParser(tools);
  return makeAnswerParser({ tags, isOpen, calls: tools.length > 0 ? callParser(template, format, tools) : undefined });
}

function callParser(template: PromptTemplate, format: ToolFormat, tools: readonly Tool[]): TextParser {
  const isUnknown = format === toolFormats.plain && template.kind === "go";
  return isUnknown ? makePlainParser(tools, toolCallTag(template)) : format.makeParser(tools);
}

/** An answer under a grammar: a call where one is required, else a value. */
async function* constrained(loaded: Loaded, question: Question, shape: Shape & Reading): Events {
  const { required, format } = shape;
  const forced = required && { ...format.forced, schema: forcedCallSchema(required, format.forced) };
  const thought = yield* thinkFirst(loaded, question, shape);
  if ("kind" in thought) {
    yield thought;
    return;
  }
  const open = forced ? forced.open : (format.marks?.answer ?? "");
  const options = { ...question.options, num_predict: thought.predictMax, ...(forced ? { stop: [] } : {}) };
  const prompt = thought.prompt + open;
  const events = answer(loaded, { ...question, prompt, options, format: forced?.schema ?? question.format });
  yield* withThinking(forced ? namingTools(oneCall(events)) : events, thought.statistics);
}

interface Thought {
  /** Up to where the answer begins. */
  readonly prompt: string;
  /** Tokens that are left for the answer; negative: as many as it takes. */
  readonly predictMax: number;
  readonly statistics: Statistics | undefined;
}

/** Lets a model think before it answers under a grammar. What it returns is `done` where it came to no answer. */
async function* thinkFirst(
  loaded: Loaded,
  question: Question,
  { tags, isOpen, think, format }: Shape & Reading,
): AsyncGenerator<InferenceEvent, Thought | DoneEvent, void> {
  const options = samplingOptions(loaded.model.parameters, question.options);
  const { prompt } = question;
  const unthought: Thought = { prompt, predictMax: options.num_predict, statistics: undefined };
  const next = format.marks?.next ?? "\n\n";
  if (!tags) return unthought;
  if (think === false) return isOpen ? { ...unthought, prompt: prompt + tags.close + next } : unthought;
  const splitter = makeThinkingSplitter(tags, isOpen);
  const stop = [...options.stop, tags.close];
  let text = "";
  const free = { ...question, format: undefined, wantsContext: false, options: { ...question.options, stop } };
  for await (const event of answer(loaded, free)) {
    if (event.kind === "done") {
      const { reason, stopSequence, statistics } = event;
      const isStopped = reason === "length" || (stopSequence !== undefined && stopSequence !== tags.close);
      const last = isStopped ? [] : splitter.push(tags.close); // the stop string took it
      yield* [...last, ...splitter.end()].filter(isThinking);
      const used = statistics?.evalCount ?? 0;
      const predictMax = options.num_predict > 0 ? options.num_predict - used : options.num_predict;
      if (isStopped || predictMax === 0) return event;
      if (!isOpen && !text.trimStart().startsWith(tags.open)) return unthought;
      return { prompt: prompt + text + tags.close + next, predictMax, statistics };
    }
    if (event.kind !== "text") continue;
    text += event.text;
    const found = splitter.push(event.text);
    if (found.some(({ kind }) => kind === "text")) return unthought; // it answers at once, but without the grammar
    yield* withLogprobs(found, event);
  }
  return unthought;
}

const isThinking = (event: ParsedEvent) => event.kind === "thinking";

/** Adds what thinking took to the statistics of the answer. */
async function* withThinking(events: Events, thinking: Statistics | undefined): Events {
  for await (const event of events) {
    if (event.kind !== "done" || !event.statistics || !thinking) yield event;
    else yield { ...event, statistics: sum(thinking, event.statistics) };
  }
}

const sum = (thinking: Statistics, rest: Statistics): Statistics => ({
  ...rest,
  promptEvalCount: thinking.promptEvalCount,
  promptCachedCount: thinking.promptCachedCount,
  promptEvalNs: thinking.promptEvalNs + rest.promptEvalNs,
  evalCount: thinking.evalCount + rest.evalCount,
  evalNs: thinking.evalNs + rest.evalNs,
});

/** A forced call, once it is complete. One that the answer ended in is no call, and no text for people either. */
async function* oneCall(events: Events): Events {
  let text = "";
  for await (const event of events) {
    if (event.kind === "text") {
      text += event.text;
      if (event.logprobs) yield { ...event, text: "" };
    } else if (event.kind === "done") {
      for (const call of callsInJson(text)) yield toEvent(call);
      yield event;
    } else yield event;
  }
}

/** The schema of a forced call is made of the tools' own, so what is wrong with it is said of them. */
async function* namingTools(events: Events): Events {
  try {
    yield* events;
  } catch (error) {
    const about = error instanceof AppError && /^format: (?:#\/\$defs\/)?(.*)$/s.exec(error.message)?.[1];
    throw about ? new AppError("bad_request", `tools: ${about}`, { cause: error }) : error;
  }
}

/** Events of a parser for the text of an answer. */
async function* parsed(events: Events, parser: TextParser | undefined): Events {
  for await (const event of events) {
    if (!parser || event.kind === "toolCall" || event.kind === "thinking") yield event;
    else if (event.kind === "text") yield* withLogprobs(parser.push(event.text), event);
    else {
      yield* parser.end().map(toEvent);
      yield event;
    }
  }
}

/** What is known of a token is told at once, also while the parser holds its text. */
function withLogprobs(
  found: readonly ParsedEvent[],
  { logprobs }: Extract<InferenceEvent, { kind: "text" }>,
): InferenceEvent[] {
  const events = found.map(toEvent);
  return logprobs ? [{ kind: "text", text: "", logprobs }, ...events] : events;
}

const toEvent = (event: ParsedEvent): InferenceEvent =>
  event.kind === "toolCall"
    ? { kind: "toolCall", call: { function: { name: event.name, arguments: event.arguments } } }
    : event;
