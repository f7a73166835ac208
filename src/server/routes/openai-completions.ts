/** `POST /v1/completions`: generate in the OpenAI API. */
import type { GenerateRequest } from "../../runtime/portable.ts";
import { withoutBlanks } from "../answers/blanks.ts";
import { readRequest } from "../http/body.ts";
import type { RouteDeps } from "./deps.ts";
import { openaiErrorBody } from "../http/errors.ts";
import type { Exchange, Reply } from "../http/exchange.ts";
import { answerEvents, type ReportEvent } from "../answers/answer.ts";
import { findWithLevel, requireModel } from "../models/find-model.ts";
import { warnUnknown } from "../requests/unknown-options.ts";
import { choicesOf, readCount, seeded } from "../openai/choices.ts";
import { checkMeasured, CompletionBody, readPrompts, toGenerate, type Prompt } from "../openai/completion.ts";
import { textChunks, textCompletion, type CompletionReplyOptions } from "../openai/completion-reply.ts";
import { makeHead } from "../openai/reply.ts";
import { limitsOf, progressOption, reportsOf, toOptions, toThink } from "../openai/settings.ts";
import { post } from "./route.ts";

export const openaiCompletionRoutes = [
  post("/v1/completions", complete, {
    api: "OpenAI",
    summary: "The continuation of a prompt",
    body: CompletionBody,
    reply: ["json", "events"],
  }),
];

async function complete(deps: RouteDeps, exchange: Exchange): Promise<Reply> {
  const body = await readRequest(exchange.request, CompletionBody);
  const prompts = readPrompts(body.prompt);
  const bestOf = body.best_of;
  const count = readCount(body.n, { prompts: prompts.length, ...(bestOf === undefined ? {} : { bestOf }) });
  const requests = prompts.map((prompt) => toGenerate(body, prompt));
  checkMeasured(prompts, requests[0]!);
  const request = await settingsOf(deps, { body, exchange });
  const echo = body.echo ? await Promise.all(prompts.map((each) => textOf(deps, request, each))) : undefined;
  const wanted = { prompts: prompts.length, count, signal: request.signal };
  const reports = reportsOf(body);
  const report = { report: (event: ReportEvent) => event };
  const choices = choicesOf(wanted, ({ prompt, choice, onPrompt, signal }) => {
    const { promptLogprobs, ...asked } = requests[prompt]!;
    const measured = choice > 0 || promptLogprobs === undefined ? {} : { promptLogprobs };
    const own = { ...request, ...asked, ...measured, options: seeded(request.options, choice), signal };
    return answerEvents(deps, own, { note: exchange.note, stages: [withoutBlanks()], onPrompt, ...report });
  });
  const options: CompletionReplyOptions = {
    head: makeHead("cmpl", { model: request.model, now: deps.now }),
    echo,
    count,
    includeUsage: body.stream_options?.include_usage ?? false,
    logprobs: body.logprobs,
    promptLogprobs: body.prompt_logprobs,
    reports,
  };
  if (!body.stream) return { kind: "json", body: await textCompletion(choices, options) };
  return {
    kind: "events",
    frames: textChunks(choices, options),
    failed: (error) => [{ data: openaiErrorBody(error) }],
  };
}

/** The text of a prompt. */
async function textOf({ runtime }: RouteDeps, { model, options, signal }: Settings, prompt: Prompt): Promise<string> {
  if (typeof prompt === "string") return prompt;
  return (await runtime.detokenize({ model, options, signal, tokens: prompt })).text;
}

type Settings = Omit<GenerateRequest, "prompt" | "raw">;

/** A request without its prompt. */
async function settingsOf(
  deps: RouteDeps,
  { body, exchange }: { body: CompletionBody; exchange: Exchange },
): Promise<Settings> {
  const model = requireModel(body.model);
  exchange.note({ model });
  const said = body.reasoning_effort;
  const { options, unknown } = toOptions(body, body.max_tokens);
  warnUnknown(deps.log, { model, unknown });
  const request = { model, options, ...limitsOf(body), ...progressOption(body), signal: exchange.signal };
  return { ...request, ...(await findWithLevel(deps, { model, think: toThink(said), said })) };
}
