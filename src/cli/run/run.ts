/**
 * `hearth run`: one question, or a conversation at a terminal. Pulls a missing model first; prints the embeddings of an
 * embedding model, and the text of a recording with a model for speech.
 */
import type { Json } from "../client/client.ts";
import { Interrupted, type CliContext } from "../terminal/context.ts";
import { showAnswer } from "./answer.ts";
import { Chat, takesOf, type ChatSettings } from "./chat.ts";
import { readImageWords, warnOfImages } from "./image-paths.ts";
import { chooseModel } from "./choose.ts";
import { converse } from "./interactive.ts";
import { readPiped } from "./piped.ts";
import { modelOfWeights } from "./weights.ts";
import { isMissing, pullFailure } from "../client/missing-model.ts";
import { readModelArgument } from "../terminal/model-argument.ts";
import { readStandardInput } from "../client/standard-input.ts";
import { fetchModel } from "../commands/transfer.ts";

interface RunOptions {
  readonly keepalive?: string;
  readonly verbose?: boolean;
  readonly insecure?: boolean;
  readonly wordwrap: boolean;
  readonly history: boolean;
  readonly format?: string;
  readonly think?: string | boolean;
  readonly hidethinking?: boolean;
  readonly truncate?: boolean;
  readonly dimensions?: number;
  /** Names of tool servers; true: all. */
  readonly tools?: string | true;
}

/** @param named absent: asks for a model */
export async function run(
  context: CliContext,
  named: string | undefined,
  given: readonly string[],
  options: RunOptions,
): Promise<void> {
  const { terminal } = context;
  const asked = withoutOtherProgram(named, given);
  const model = await modelNamed(context, asked.named);
  const { words } = asked;
  const keepAlive = options.keepalive?.replace(/^-?\d+$/, "$&s"); // the API takes seconds as numbers only
  const found = await showOrPull(context, model, options);
  if ((found["capabilities"] ?? []).includes("transcription"))
    return (await import("./transcribe.ts")).transcribe(context, words, { model, keepAlive });
  const takes = takesOf(found);
  const piped = readPiped(terminal.input.isTTY ? new Uint8Array() : await readStandardInput(), { model, takes });
  const typed = piped.text;
  await warnOfImages(words, { model, takes }, terminal);
  const question = await readImageWords(words, takes, terminal);
  const prompt = [typed, question.text].filter((part) => part !== "").join("\n\n");
  const settings: ChatSettings = {
    model,
    system: undefined,
    options: {},
    format: options.format === undefined ? undefined : parseFormat(options.format),
    think: parseThink(options.think),
    keepAlive,
    hideThinking: options.hidethinking ?? false,
    wordWrap: options.wordwrap,
    verbose: options.verbose ?? false,
    takes,
  };
  if ((found["capabilities"] ?? []).includes("embedding")) return embed(context, prompt, { settings, options });
  const tools =
    options.tools === undefined ? undefined : await (await import("./tools.ts")).offerTools(context, options.tools);
  if (tools && piped.images.length > 0) throw new Error("--tools: expected text on standard input, got a file");
  if (tools && prompt !== "") {
    const chat = new Chat(settings, tools);
    const asked = [typed, words.join(" ")].filter((part) => part !== "").join("\n\n"); // it reads images itself
    return whole(context, (signal) => chat.ask(context, asked, signal));
  }
  const images = [...piped.images, ...question.images];
  if (prompt !== "" || images.length > 0 || !terminal.isInteractive)
    return generate(context, { prompt, images }, settings);
  await load(context, settings);
  return converse(context, settings, { remembers: options.history, tools });
}

/** Accepts `ollama run x` pasted after `hearth run`. */
function withoutOtherProgram(
  named: string | undefined,
  words: readonly string[],
): { named: string | undefined; words: readonly string[] } {
  const [verb, model, ...rest] = words;
  const isPasted = named === "ollama" && (verb === "run" || verb === "pull") && model !== undefined;
  return isPasted ? { named: model, words: rest } : { named, words };
}

async function modelNamed(context: CliContext, text: string | undefined): Promise<string> {
  if (text === undefined) return chooseModel(context);
  const argument = await readModelArgument(text);
  return argument.kind === "name" ? argument.name : modelOfWeights(context, argument);
}

async function showOrPull(context: CliContext, model: string, options: RunOptions): Promise<Json> {
  const show = (): Promise<Json> => context.client.post("/api/show", { model });
  try {
    return await show();
  } catch (error) {
    if (!isMissing(error)) throw error;
    await pullMissing(context, model, options);
    return show();
  }
}

async function pullMissing(context: CliContext, model: string, { insecure }: RunOptions): Promise<void> {
  try {
    await fetchModel(context, model, { insecure });
  } catch (error) {
    throw await pullFailure(context.client, error, { model, isWanted: true });
  }
}

function parseThink(value: string | boolean | undefined): string | boolean | undefined {
  if (value === "true" || value === "") return true;
  return value === "false" ? false : value;
}

const common = ({ model, keepAlive }: ChatSettings): object => ({
  model,
  ...(keepAlive === undefined ? {} : { keep_alive: keepAlive }),
});

const load = (context: CliContext, settings: ChatSettings): Promise<void> =>
  whole(context, (signal) => context.client.post("/api/generate", common(settings), signal));

/** Throws `Interrupted` if Ctrl+C ended the work, because the output is incomplete. */
async function whole(context: CliContext, work: (signal: AbortSignal) => Promise<unknown>): Promise<void> {
  await context.interruptible(async (signal) => {
    await work(signal).catch((error: unknown) => {
      if (!signal.aborted) throw error;
    });
    if (signal.aborted) throw new Interrupted();
  });
}

interface Question {
  readonly prompt: string;
  readonly images: readonly string[];
}

async function generate(context: CliContext, question: Question, settings: ChatSettings): Promise<void> {
  const { prompt, images } = question;
  const { format, think, wordWrap, hideThinking, verbose } = settings;
  const body = {
    ...common(settings),
    prompt,
    ...(images.length > 0 ? { images } : {}),
    ...(format === undefined ? {} : { format }),
    ...(think === undefined ? {} : { think }),
  };
  if (prompt === "" && images.length === 0) return load(context, settings);
  const options = { path: "/api/generate", body, wordWrap, hideThinking, verbose } as const;
  await whole(context, async (signal) => {
    const { text } = await showAnswer(context, options, signal);
    if (format !== undefined && !signal.aborted) checkJson(text);
  });
}

/** Throws if the output is not valid JSON. */
function checkJson(text: string): void {
  try {
    JSON.parse(text);
  } catch (error) {
    const next = "a PARAMETER num_predict of the model, or its context, may be too small";
    throw new Error(`the answer is not complete JSON: ${next}`, { cause: error });
  }
}

/** `json`, or a JSON schema as text. */
function parseFormat(text: string): unknown {
  if (!text.trimStart().startsWith("{")) return text;
  try {
    return JSON.parse(text);
  } catch {
    throw new Error("--format: expected 'json' or a JSON schema");
  }
}

/** Prints the embedding of the prompt as a JSON array. */
async function embed(
  { client, terminal }: CliContext,
  input: string,
  { settings, options }: { settings: ChatSettings; options: RunOptions },
): Promise<void> {
  if (input === "") throw new Error('embedding models require input text; usage: hearth run MODEL "text"');
  const { embeddings } = await client.post("/api/embed", {
    ...common(settings),
    input,
    ...(options.truncate === undefined ? {} : { truncate: options.truncate }),
    ...(options.dimensions === undefined ? {} : { dimensions: options.dimensions }),
  });
  terminal.write(`${JSON.stringify(embeddings[0])}\n`);
}
