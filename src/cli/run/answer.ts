/**
 * Shows one answer as it arrives: thinking in grey between two marker lines, text wrapped at words, and a spinner
 * before the first token.
 */
import { ApiError, type Json } from "../client/client.ts";
import type { CliContext } from "../terminal/context.ts";
import { joined, plain, sequences, type Drawing } from "../terminal/drawing.ts";
import { statisticsText } from "./statistics.ts";
import { WordWrap } from "./word-wrap.ts";

interface AnswerOptions {
  /** `/api/chat` with `messages`, or `/api/generate` with `prompt`. */
  readonly path: "/api/chat" | "/api/generate";
  readonly body: object;
  readonly wordWrap: boolean;
  readonly hideThinking: boolean;
  readonly verbose: boolean;
  /** True if the caller executes the model's calls; otherwise they are shown. */
  readonly takesCalls?: boolean;
}

export interface Answer {
  readonly text: string;
  readonly thinking: string;
  /** The model's calls, if the caller executes them. */
  readonly calls: readonly Json[];
  /** Ids to send with the next generate request. */
  readonly context: readonly number[] | undefined;
}

/** Shows an answer to its end. Throws `ApiError`; an aborted one returns the text so far. */
export async function showAnswer(context: CliContext, options: AnswerOptions, signal: AbortSignal): Promise<Answer> {
  const { client, terminal } = context;
  const wait = showWaiting(context);
  const page = new Page(context, options);
  const calls: Json[] = [];
  let done: Json = {};
  try {
    for await (const event of client.stream(options.path, options.body, signal)) {
      wait.end();
      const { content = "", thinking = "" } = event["message"] ?? {
        content: event["response"],
        thinking: event["thinking"],
      };
      page.addThinking(thinking ?? "");
      page.addText(content ?? "");
      for (const call of event["message"]?.tool_calls ?? []) {
        if (options.takesCalls) calls.push(call);
        else page.addText(`${JSON.stringify(call.function)}\n`);
      }
      if (event["done"]) done = event;
    }
    if (!done["done"]) throw new ApiError(0, "the server's reply ended before the answer did");
  } catch (error) {
    if (!signal.aborted) throw error;
  } finally {
    wait.end();
    page.end();
  }
  if (options.verbose) terminal.note(`\n${statisticsText(done).trimEnd()}`);
  return { text: page.text, thinking: page.thinking, calls, context: done["context"] };
}

class Page {
  readonly #context: CliContext;
  readonly #options: AnswerOptions;
  readonly #wrap: WordWrap;
  /** Makes the model's text safe for the terminal. */
  readonly #plain: (text: string) => Drawing;
  #isThinking = false;
  text = "";
  thinking = "";

  constructor(context: CliContext, options: AnswerOptions) {
    this.#context = context;
    this.#options = options;
    this.#wrap = new WordWrap(options.wordWrap ? context.terminal.width : undefined);
    this.#plain = context.terminal.pieces();
  }

  addThinking(text: string): void {
    if (text === "") return;
    this.thinking += text;
    if (this.#options.hideThinking) return;
    const { terminal } = this.#context;
    if (!this.#isThinking) terminal.draw(terminal.grey(plain("Thinking...\n")));
    this.#isThinking = true;
    terminal.draw(terminal.grey(this.#wrap.push(this.#plain(text))));
  }

  addText(text: string): void {
    if (text === "") return;
    const { terminal } = this.#context;
    if (this.#isThinking) terminal.draw(terminal.grey(this.#wrap.push(plain("\n...done thinking.\n\n"))));
    this.#isThinking = false;
    this.text += text;
    terminal.draw(this.#wrap.push(this.#plain(text)));
  }

  end(): void {
    if (this.text !== "" || this.thinking !== "") this.#context.terminal.write("\n");
  }
}

const FRAMES = ["⠋", "⠙", "⠹", "⠸", "⠼", "⠴", "⠦", "⠧", "⠇", "⠏"];

/** A spinner on standard error until the first text. */
function showWaiting({ terminal }: CliContext): { end(): void } {
  if (!terminal.showsProgress) return { end: () => {} };
  let frame = 0;
  const showFrame = (n: number): void =>
    terminal.drawBeside(joined([sequences.lineStart, plain(`${FRAMES[n % FRAMES.length]} `)]));
  const timer = setInterval(() => showFrame(frame++), 100);
  let isShown = true;
  return {
    end() {
      if (!isShown) return;
      isShown = false;
      clearInterval(timer);
      if (frame > 0) terminal.drawBeside(sequences.eraseLine);
    },
  };
}
