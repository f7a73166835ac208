/**
 * Earlier prompts, in a file of one line each, the newest last. A prompt of several lines keeps its quotes, and its
 * line breaks are stored as `\r`.
 */
import { mkdirSync, readFileSync, writeFileSync } from "node:fs";
import { dirname } from "node:path";

const PROMPTS_MAX = 1000;

export class History {
  readonly #path: string | undefined;
  /** The newest first. */
  #prompts: readonly string[];

  /** @param path undefined: the history is not saved */
  constructor(path: string | undefined) {
    this.#path = path;
    this.#prompts = readPrompts(path);
  }

  get prompts(): readonly string[] {
    return this.#prompts;
  }

  add(prompt: string): void {
    this.#prompts = withPrompt(this.#prompts, prompt);
  }

  /** Adds a prompt to the file, which other conversations may have changed. Throws if it cannot be written. */
  save(prompt: string): void {
    if (this.#path === undefined) return;
    const lines = withPrompt(readPrompts(this.#path), prompt)
      .map((each) => each.replaceAll("\n", "\r"))
      .toReversed();
    mkdirSync(dirname(this.#path), { recursive: true, mode: 0o700 });
    writeFileSync(this.#path, `${lines.join("\n")}\n`, { mode: 0o600 });
  }
}

const withPrompt = (prompts: readonly string[], prompt: string): string[] =>
  [prompt, ...prompts.filter((each) => each !== prompt)].slice(0, PROMPTS_MAX);

/** The newest first; empty if the file does not exist. */
function readPrompts(path: string | undefined): string[] {
  if (path === undefined) return [];
  try {
    return readFileSync(path, "utf8")
      .split("\n")
      .map((line) => line.replace(/\r$/, "").replaceAll("\r", "\n"))
      .filter((line) => line !== "")
      .toReversed();
  } catch {
    return []; // an unreadable history must not prevent a conversation
  }
}
