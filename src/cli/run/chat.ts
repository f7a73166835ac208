/**
 * A conversation at the terminal: its messages, and the settings of the next request. Commands change it, prompts add
 * to it.
 */
import type { Json } from "../client/client.ts";
import type { CliContext } from "../terminal/context.ts";
import { showAnswer } from "./answer.ts";
import { readImages, warnOfImages, type Takes } from "./image-paths.ts";
import { ROUNDS_MAX, type RunTools } from "./tools.ts";

export interface ChatSettings {
  model: string;
  system: string | undefined;
  options: Record<string, unknown>;
  /** `json`, or a JSON schema; undefined: any text. */
  format: unknown;
  think: string | boolean | undefined;
  keepAlive: string | undefined;
  hideThinking: boolean;
  wordWrap: boolean;
  verbose: boolean;
  /** The files that a prompt may name by path. */
  takes: Takes;
}

/** The files that a model takes, by its `show` reply. */
export const takesOf = ({ capabilities = [] }: Json): Takes => ({
  image: capabilities.includes("vision"),
  recording: capabilities.includes("audio"),
});

interface ChatMessage {
  readonly role: string;
  readonly content: string;
  readonly thinking?: string;
  /** Base64 of each image. */
  readonly images?: readonly string[];
  readonly tool_calls?: readonly Json[];
}

export class Chat {
  readonly settings: ChatSettings;
  readonly #tools: RunTools | undefined;
  /** Without the system message. */
  messages: ChatMessage[] = [];

  /** @param tools absent: the model has none */
  constructor(settings: ChatSettings, tools?: RunTools) {
    this.settings = settings;
    this.#tools = tools;
  }

  /** Sends a question, shows the answer and stores both; a failed question is dropped. */
  async ask(context: CliContext, typed: string, signal: AbortSignal): Promise<void> {
    const before = this.messages;
    await warnOfImages([typed], this.settings, context.terminal);
    const { text: content, images } = await readImages(typed, this.settings.takes, context.terminal);
    this.messages = [...before, { role: "user", content, ...(images.length > 0 ? { images } : {}) }];
    try {
      for (let round = 1; await this.#answer(context, signal, round); round++);
    } catch (error) {
      this.messages = before;
      throw error;
    }
  }

  /** One answer of the model, and the results of its calls. Returns true if the model must answer again. */
  async #answer(context: CliContext, signal: AbortSignal, round: number): Promise<boolean> {
    const { wordWrap, hideThinking, verbose } = this.settings;
    const tools = round === ROUNDS_MAX ? undefined : this.#tools;
    const body = { ...this.#request(), ...(tools ? { tools: tools.definitions } : {}) };
    const options = {
      path: "/api/chat",
      body,
      wordWrap,
      hideThinking,
      verbose,
      takesCalls: tools !== undefined,
    } as const;
    const { text, thinking, calls } = await showAnswer(context, options, signal);
    const called = calls.length > 0 ? { tool_calls: calls } : {};
    const answer = { role: "assistant", content: text, ...(thinking === "" ? {} : { thinking }), ...called };
    const results: ChatMessage[] = [];
    for (const call of tools ? calls : []) results.push((await tools!.run(call, signal)) as ChatMessage);
    this.messages = [...this.messages, answer, ...results];
    return results.length > 0 && !signal.aborted;
  }

  #request(): object {
    const { model, system, options, format, think, keepAlive } = this.settings;
    return {
      model,
      messages: [...(system === undefined ? [] : [{ role: "system", content: system }]), ...this.messages],
      options,
      ...(format === undefined ? {} : { format }),
      ...(think === undefined ? {} : { think }),
      ...(keepAlive === undefined ? {} : { keep_alive: keepAlive }),
    };
  }

  /** The request that saves this conversation as a model. */
  saved(name: string): Json {
    const { model, system, options } = this.settings;
    return {
      model: name,
      from: model,
      ...(system === undefined ? {} : { system }),
      ...(Object.keys(options).length > 0 ? { parameters: options } : {}),
      ...(this.messages.length > 0 ? { messages: this.messages.map(({ role, content }) => ({ role, content })) } : {}),
    };
  }
}
