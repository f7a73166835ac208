/**
 * From messages to a model's input text: chooses one of a model's templates, and builds its context. A model can have a
 * Go template (a layer of its manifest, or in a request) and a Jinja chat template (in its GGUF); the Go template wins
 * unless the other can do more.
 */
import { AppError, once } from "../../../base/index.ts";
import { type GoPrompt, parseGoPrompt, renderGoChat, renderGoInsert, thinkingTags } from "./go-prompt.ts";
import { type JinjaTemplate, parseJinja } from "./jinja.ts";
import { effortOf, foldSystem, joinThoughts, splitCalls, splitText } from "./adapt.ts";
import { callsWithoutText, needsParts, takesSystem } from "./probes.ts";
import { plainTool, withParameters } from "./plain-tools.ts";
import { namedTemplate } from "./named-templates.ts";
import { nameResults, wantsShortIds, withShortIds } from "./call-ids.ts";
import { jinjaThinkingTags } from "./thinking.ts";
import type { PromptMessage, PromptTool, Think } from "./messages.ts";

export type { PromptMessage, PromptTool, PromptToolCall, Think } from "./messages.ts";

/** Texts of tokens that a template may print. */
interface SpecialTokens {
  readonly bos?: string;
  readonly eos?: string;
}

interface JinjaPrompt {
  readonly kind: "jinja";
  readonly source: string;
  readonly template: JinjaTemplate;
  readonly tokens: SpecialTokens;
  /** True if the template needs call ids in the form of `withShortIds`. */
  readonly wantsShortIds: boolean;
  /** Returns whether the template prints system messages; probed once. */
  readonly takesSystem: () => boolean;
  /** Returns whether the template renders content only as a list of parts; probed once. */
  readonly needsParts: () => boolean;
  /** Returns whether the template prints calls only of messages whose content is null; probed once. */
  readonly callsWithoutText: () => boolean;
}

export type PromptTemplate = JinjaPrompt | GoPrompt;

/** For a model that has no template. */
const DEFAULT_TEMPLATE = "{{ .Prompt }}";

interface TemplateSources {
  readonly jinja?: string | undefined;
  readonly go?: string | undefined;
  readonly tokens?: SpecialTokens;
  /** True: the Go template wins in any case; false: it loses. */
  readonly prefersGo?: boolean | undefined;
  /** The name of a built-in template in the model's configuration; it overrides the model's own. */
  readonly renderer?: string | undefined;
}

/**
 * @throws AppError if the chosen template does not parse; `unsupported` if a model has no template, and the configured
 * one does not exist here
 */
export function choosePrompt({ jinja, go, tokens = {}, prefersGo, renderer }: TemplateSources): PromptTemplate {
  const named = prefersGo ? undefined : namedTemplate(renderer);
  if (named !== undefined) return parseJinjaPrompt(named, tokens);
  if (renderer && jinja === undefined && (go ?? DEFAULT_TEMPLATE).trim() === DEFAULT_TEMPLATE && !prefersGo) {
    const what = `the prompts of this model are made by the renderer '${renderer}'`;
    throw new AppError("unsupported", `${what}, which is not known here, and its file has no chat template`);
  }
  if (jinja === undefined) return parseGoPrompt(go ?? DEFAULT_TEMPLATE);
  if (go === undefined || prefersGo === false) return parseJinjaPrompt(jinja, tokens);
  const goPrompt = parseGoPrompt(go);
  return prefersGo || !offersMore(jinja, goPrompt) ? goPrompt : parseJinjaPrompt(jinja, tokens);
}

function parseJinjaPrompt(source: string, tokens: SpecialTokens): JinjaPrompt {
  const template = parseJinja(source);
  const trial = (messages: readonly PromptMessage[], how: Partial<JinjaPrompt> = {}): string =>
    template.render(jinjaContext({ messages, now: TRIAL_TIME }, { ...prompt, ...how }), TRIAL_TIME);
  const prompt: JinjaPrompt = {
    kind: "jinja",
    source,
    template,
    tokens,
    wantsShortIds: wantsShortIds(source),
    takesSystem: once(() => takesSystem((messages) => trial(messages))),
    needsParts: once(() => needsParts((messages, asParts) => trial(messages, { needsParts: () => asParts }))),
    callsWithoutText: once(() =>
      callsWithoutText((messages, isNull) => trial(messages, { callsWithoutText: () => isNull })),
    ),
  };
  return prompt;
}

const TRIAL_TIME = new Date(0);

export interface Capabilities {
  readonly tools: boolean;
  readonly thinking: boolean;
  /** Fill in the middle. */
  readonly insert: boolean;
}

/** The features that a template supports. */
export function capabilitiesOf(prompt: PromptTemplate): Capabilities {
  if (prompt.kind === "jinja") return jinjaCapabilities(prompt.source);
  return {
    tools: prompt.vars.has("tools"),
    thinking: thinkingTags(prompt) !== undefined,
    insert: prompt.vars.has("suffix"),
  };
}

function jinjaCapabilities(source: string): Capabilities {
  return {
    tools: source.includes("tools") || source.includes("tool_call"),
    thinking: jinjaThinkingTags(source) !== undefined,
    insert: false,
  };
}

/** Returns whether the Jinja template can do something that the Go template cannot. */
function offersMore(jinja: string, go: GoPrompt): boolean {
  const theirs = jinjaCapabilities(jinja);
  const ours = capabilitiesOf(go);
  const count = (capabilities: Capabilities): number => Object.values(capabilities).filter(Boolean).length;
  const areSame = theirs.tools === ours.tools && theirs.thinking === ours.thinking && theirs.insert === ours.insert;
  const jinjaReturns = returnsResultsInJinja(jinja);
  const goReturns = returnsResultsInGo(go);
  if (count(theirs) > count(ours)) return !goReturns || jinjaReturns;
  return areSame && jinjaReturns && !goReturns;
}

/** Returns whether a template prints both calls and tool results. */
const returnsResultsInJinja = (source: string): boolean =>
  /tool_calls|assistant_tool_call/.test(source) &&
  /tool_response|tool_results|role['"]?\]?\s*==\s*['"](?:tool|ipython)['"]|ipython/.test(source);

const returnsResultsInGo = ({ vars, source }: GoPrompt): boolean =>
  vars.has("tools") && vars.has("toolcalls") && /eq\s+\.Role\s+"tool"|tool_response|TOOL_RESULTS/.test(source);

interface ChatPrompt {
  readonly messages: readonly PromptMessage[];
  readonly tools?: readonly PromptTool[];
  /** Undefined: not set. */
  readonly think?: Think;
  /** Additional variables of a Jinja template, which override ours. */
  readonly variables?: Readonly<Record<string, unknown>>;
  readonly now: Date;
  /** True if the prompt opens the model's answer; default true. Go templates always do. */
  readonly addGenerationPrompt?: boolean;
}

/**
 * The prompt for a conversation. If the last message is the model's own, the prompt ends inside it, and the model
 * continues.
 * @throws AppError `bad_request` if the template fails or refuses, `too_large` beyond its limits
 */
export function renderChat(prompt: PromptTemplate, request: ChatPrompt): string {
  const named = { ...request, messages: nameResults(request.messages) };
  return prompt.kind === "go" ? renderGoChat(prompt, named) : renderJinjaChat(prompt, named);
}

function renderJinjaChat(prompt: JinjaPrompt, request: ChatPrompt): string {
  const { addGenerationPrompt = true } = request;
  const messages = prompt.wantsShortIds ? withShortIds(request.messages) : request.messages;
  const last = messages.at(-1);
  const begun =
    addGenerationPrompt && last?.role === "assistant" && !last.tool_calls?.length ? last.content : undefined;
  const given = { ...request, messages: begun === undefined ? messages : messages.slice(0, -1) };
  return renderAdapted(prompt, given) + (begun ?? "");
}

/** The conversation unchanged, or, if the template refuses it, in the closest accepted form. */
function renderAdapted(prompt: JinjaPrompt, request: ChatPrompt): string {
  const { template } = prompt;
  const hasSystem = request.messages.some(({ role }) => role === "system");
  const messages = hasSystem && !prompt.takesSystem() ? foldSystem(request.messages) : request.messages;
  const context = jinjaContext({ ...request, messages }, prompt);
  try {
    return template.render(context, request.now);
  } catch (error) {
    if (!(error instanceof AppError) || !["bad_request", "too_large"].includes(error.code)) throw error;
    const isEndless = error.code === "too_large"; // a macro may call itself for an unusual type
    if (isEndless && !request.tools?.length) throw error;
    for (const given of otherTools(request.tools).slice(isEndless ? -1 : 0)) {
      const shown = { ...context, ...toolVariables(given) };
      for (const shape of otherShapes(messages, prompt).slice(0, isEndless ? 1 : undefined)) {
        try {
          const tools = shown["tools"] === null ? undefined : shown["tools"];
          return template.render({ ...shown, tools, messages: shape }, request.now, { mayShrink: true });
        } catch {
          // the first refusal is reported
        }
      }
    }
    throw error;
  }
}

/** The tools unchanged, then in the form for templates that read parts of a schema that may be missing. */
const otherTools = (tools: readonly PromptTool[] | undefined): readonly (readonly PromptTool[] | undefined)[] =>
  tools && tools.length > 0 ? [tools, tools.map(withParameters), tools.map(plainTool)] : [tools];

/** Other forms of the messages for templates that refuse the first one, the closest first. */
function otherShapes(messages: readonly PromptMessage[], prompt: JinjaPrompt): readonly Record<string, unknown>[][] {
  const joined = joinThoughts(messages);
  const shapes = [messages, splitCalls(messages), joined, splitCalls(joined)].map((each) =>
    each.map((message) => jinjaMessage(message, prompt)),
  );
  return [...shapes, ...shapes.map((each) => each.map(withTextArguments))];
}

/** The context of a template. */
function jinjaContext(
  { messages, tools, think, variables, now, addGenerationPrompt = true }: ChatPrompt,
  prompt: Pick<JinjaPrompt, "source" | "tokens" | "needsParts" | "callsWithoutText">,
): Record<string, unknown> {
  const { source, tokens } = prompt;
  return {
    messages: messages.flatMap((message) => {
      const isBoth = message.content !== "" && message.tool_calls?.length && prompt.callsWithoutText();
      return (isBoth ? splitText(message) : [message]).map((each) => jinjaMessage(each, prompt));
    }),
    ...toolVariables(tools),
    documents: null,
    add_generation_prompt: addGenerationPrompt,
    enable_thinking: think === undefined ? undefined : Boolean(think),
    thinking: think === false ? false : undefined, // the name in Kimi's templates, which think unless it is false
    reasoning_effort: effortOf(think, source),
    thinking_effort: effortOf(think, source),
    bos_token: tokens.bos ?? "",
    eos_token: tokens.eos ?? "",
    datetime: source.includes("datetime") ? timeText(now) : undefined, // for FireFunction
    ...variables,
  };
}

const toolVariables = (tools: readonly PromptTool[] = []): Record<string, unknown> => ({
  tools: tools.length > 0 ? tools : null,
  xml_tools: tools.length > 0 ? tools : undefined, // for SmolLM3
  functions: tools.length > 0 ? JSON.stringify(tools, null, 2) : "", // for FireFunction
});

/** `Nov 22 2026 09:05:07 GMT`. */
function timeText(now: Date): string {
  const [, day, month, year, time] = now.toUTCString().split(/,? /);
  return `${month} ${day} ${year} ${time} GMT`;
}

/**
 * A message under the names of Jinja templates: `name` of a tool, `reasoning_content`, calls with their type and
 * without our index.
 */
const jinjaMessage = (
  message: PromptMessage,
  { needsParts: asParts, callsWithoutText }: Pick<JinjaPrompt, "needsParts" | "callsWithoutText">,
): Record<string, unknown> => ({
  role: message.role,
  content:
    message.content === "" && message.tool_calls?.length && callsWithoutText()
      ? null
      : asParts()
        ? [{ type: "text", text: message.content }]
        : message.content,
  thinking: message.thinking || undefined,
  reasoning_content: message.thinking || undefined,
  tool_calls: message.tool_calls?.map(({ id, function: { name, arguments: args } }) => ({
    id: id || undefined,
    type: "function",
    function: { name, arguments: args },
  })),
  name: message.tool_name || undefined,
  tool_call_id: message.tool_call_id || undefined,
});

/** The same, with call arguments as JSON text, as in OpenAI's API. */
function withTextArguments(message: Record<string, unknown>): Record<string, unknown> {
  const { tool_calls: calls } = message as { tool_calls?: readonly JinjaCall[] }; // jinjaMessage made it
  if (!calls) return message;
  const asText = ({ function: { name, arguments: args }, ...call }: JinjaCall) => ({
    ...call,
    function: { name, arguments: JSON.stringify(args) },
  });
  return { ...message, tool_calls: calls.map(asText) };
}

interface JinjaCall {
  readonly function: { readonly name: string; readonly arguments: unknown };
}

interface GeneratePrompt {
  readonly prompt: string;
  /** The text after the gap that the model fills in; `prompt` is the text before it. */
  readonly suffix?: string;
  readonly system?: string;
  /** Messages before the prompt. */
  readonly history?: readonly PromptMessage[];
  /** The beginning of the answer. */
  readonly response?: string;
  readonly think?: Think;
  readonly now: Date;
}

/**
 * The prompt for one question, or for the gap between two texts.
 * @throws AppError as renderChat; `bad_request` if the template has no place for a suffix
 */
export function renderGenerate(prompt: PromptTemplate, request: GeneratePrompt): string {
  const { suffix, system, history = [], response, prompt: text, ...rest } = request;
  if (suffix) {
    if (!capabilitiesOf(prompt).insert || prompt.kind !== "go") {
      throw new AppError("bad_request", "suffix: the model's template does not support insert");
    }
    if (text) return renderGoInsert(prompt, { prompt: text, suffix }, { ...rest, messages: [] });
  }
  const messages: PromptMessage[] = [...history, { role: "user", content: text }];
  if (system) messages.unshift({ role: "system", content: system });
  if (response) messages.push({ role: "assistant", content: response });
  return renderChat(prompt, { ...rest, messages });
}
