/**
 * llama-server's `POST /completion` and `/completions`: continues prompts without a template. `POST /infill` fills a
 * gap.
 */
import type { GenerateRequest } from "../../runtime/portable.ts";
import { answerEvents, type ReportEvent } from "../answers/answer.ts";
import { readGrammar } from "../answers/grammar-fields.ts";
import { readRequest } from "../http/body.ts";
import { llamaErrorBody } from "../http/errors.ts";
import type { Exchange, Reply } from "../http/exchange.ts";
import { findModel, loadedModel, requireModel } from "../models/find-model.ts";
import { choicesOf, readCount, seeded } from "../openai/choices.ts";
import { InfillBody, toFill } from "../openai/fill.ts";
import {
  NativeBody,
  readNativePrompts,
  toAsked,
  toLogprobs,
  toNativeOptions,
  type Encode,
  type NativeFields,
} from "../openai/native-completion.ts";
import { nativeEvents, nativeFrames, wholeAnswer, type About, type NativeEvents } from "../openai/native-reply.ts";
import { nativeSettings } from "../openai/native-settings.ts";
import { limitsOf, progressOption } from "../openai/settings.ts";
import { warnUnknown } from "../requests/unknown-options.ts";
import type { RouteDeps } from "./deps.ts";
import { post } from "./route.ts";

const COMPLETION = {
  api: "native",
  summary: "The continuation of a prompt, as it is",
  body: NativeBody,
  reply: ["json", "events"],
} as const;

export const nativeCompletionRoutes = [
  post("/completion", complete, COMPLETION),
  post("/completions", complete, COMPLETION),
  post("/infill", infill, {
    api: "native",
    summary: "The text between two others",
    body: InfillBody,
    reply: ["json", "events"],
  }),
];

async function complete(deps: RouteDeps, exchange: Exchange): Promise<Reply> {
  const body = await readRequest(exchange.request, NativeBody);
  const prompts = readNativePrompts(body.prompt);
  const count = readCount(body.n_cmpl ?? body.n, { prompts: prompts.length });
  const asking = await askingOf(deps, { body, exchange });
  const asked = await Promise.all(prompts.map((each) => toAsked(each, asking.encode)));
  const texts = await Promise.all(asked.map((each) => textOf(deps, asking.request, each)));
  const answers = choicesOf({ prompts: prompts.length, count, signal: exchange.signal }, (start) => {
    const options = seeded(asking.request.options, start.choice);
    const own = { ...asking.request, ...asked[start.prompt]!, options, signal: start.signal };
    return eventsOf(deps, { request: own, exchange, body, onPrompt: start.onPrompt });
  });
  return reply(answers, { ...asking, body, isList: prompts.length * count > 1 }, (i) => texts[Math.floor(i / count)]!);
}

async function infill(deps: RouteDeps, exchange: Exchange): Promise<Reply> {
  const body = await readRequest(exchange.request, InfillBody);
  const asking = await askingOf(deps, { body, exchange });
  const filled = toFill(body);
  const request = { ...asking.request, ...filled };
  const answers = [eventsOf(deps, { request, exchange, body })];
  return reply(answers, { ...asking, body, isList: false }, () => filled.prompt);
}

interface Asking {
  readonly request: Omit<GenerateRequest, "prompt" | "raw">;
  readonly encode: Encode;
  readonly settings: object;
}

/** A request without its prompt. */
async function askingOf(
  deps: RouteDeps,
  { body, exchange }: { body: NativeFields; exchange: Exchange },
): Promise<Asking> {
  const model = requireModel(body.model || loadedModel(deps));
  exchange.note({ model });
  const ref = await findModel(deps.store, model);
  const { signal } = exchange;
  const encode: Encode = async (text, addSpecial) => {
    const asked = { model, ref, options: {}, signal, text: text.toWellFormed(), wantsPieces: false };
    return (await deps.runtime.tokenize({ ...asked, addSpecial, parseSpecial: true })).tokens;
  };
  const { options, unknown } = await toNativeOptions(body, encode);
  warnUnknown(deps.log, { model, unknown });
  const limits = { ...readGrammar(body), ...limitsOf(body), ...toLogprobs(body), ...progressOption(body) };
  return {
    request: { model, ref, options, ...limits, signal },
    encode,
    settings: nativeSettings({ ...(await deps.inspect(ref))?.parameters, ...ref.parameters, ...options }, body),
  };
}

/** The prompt's text. */
async function textOf(
  { runtime }: RouteDeps,
  { model, ref, options, signal }: Asking["request"],
  { prompt, context }: Pick<GenerateRequest, "prompt" | "context">,
): Promise<string> {
  if (!context) return prompt;
  return (await runtime.detokenize({ model, ...(ref ? { ref } : {}), options, signal, tokens: context })).text;
}

interface Answering {
  readonly request: GenerateRequest;
  readonly exchange: Exchange;
  readonly body: NativeFields;
  readonly onPrompt?: () => void;
}

function eventsOf(deps: RouteDeps, { request, exchange, body, onPrompt }: Answering): NativeEvents {
  const report = { report: (event: ReportEvent) => event };
  const answering = { note: exchange.note, ...report, ...(onPrompt ? { onPrompt } : {}) };
  return nativeEvents(answerEvents(deps, request, answering), body.t_max_predict_ms);
}

/** One answer, or a list of them. */
async function reply(
  answers: readonly NativeEvents[],
  { request, settings, body, isList }: Asking & { readonly body: NativeFields; readonly isList: boolean },
  promptOf: (index: number) => string,
): Promise<Reply> {
  const { return_tokens: ids = false, n_probs = 0, post_sampling_probs: isLinear = false } = body;
  const about: About = {
    model: request.model,
    settings,
    promptOf,
    tokens: { ids, probabilities: n_probs > 0, isLinear },
    timesFrames: body.timings_per_token ?? false,
    fields: body.response_fields,
  };
  if (body.stream) {
    return {
      kind: "events",
      frames: nativeFrames(answers, about),
      failed: (error) => [{ data: llamaErrorBody(error) }],
    };
  }
  const whole = await Promise.all(answers.map((events, index) => wholeAnswer(events, index, about)));
  return { kind: "json", body: isList ? whole : whole[0]! };
}
