/**
 * Earlier prompts, in a file of one line each, the newest last. A message of several lines keeps its quotes, and has
 * `\r` for its line ends there.
 */
import { mkdirSync, readFileSync, writeFileSync } from "node:fs";
import { dirname } from "node:path";

const PROMPTS_MAX = 1000;

export class History {
  readonly #path: string | undefined;
  /** The newest first. */
  #prompts: readonly string[];

  /** @param path undefined: nothing is saved */
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

  /** Adds a prompt to the file, which other conversations may have changed. Throws where it cannot be written. */
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

/** The newest first; nothing where there is no such file. */
function readPrompts(path: string | undefined): string[] {
  if (path === undefined) return [];
  try {
    return readFileSync(path, "utf8")
      .split("\n")
      .map((line) => line.replace(/\r$/, "").replaceAll("\r", "\n"))
      .filter((line) => line !== "")
      .toReversed();
  } catch {
    return []; // a history that cannot be read is no reason not to talk
  }
}
