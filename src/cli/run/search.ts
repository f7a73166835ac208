/** Ctrl+R: searches earlier prompts, backwards, one key at a time. */
import type { Key } from "node:readline";

/** `edit`: the match becomes the line; `send`: it is sent; `cancel`: the line is restored. */
export type SearchState = "searching" | "edit" | "send" | "cancel";

export class HistorySearch {
  readonly #prompts: readonly string[];
  #at = 0;
  query = "";

  /** @param prompts the newest first */
  constructor(prompts: readonly string[]) {
    this.#prompts = prompts;
  }

  get match(): string | undefined {
    return this.query === "" ? undefined : this.#prompts[this.#at];
  }

  onKey(typed: string | undefined, key: Key | undefined): SearchState {
    const { name, ctrl, meta } = key ?? {};
    if (ctrl && name === "r") this.#find(this.#at + 1);
    else if (name === "backspace") this.#change(this.query.slice(0, -1));
    else if (name === "escape" || (ctrl && (name === "c" || name === "g"))) return "cancel";
    else if (name === "return" || name === "enter") return this.match === undefined ? "cancel" : "send";
    else if (typed && !ctrl && !meta && /^\P{Cc}+$/u.test(typed)) this.#change(this.query + typed);
    else return this.match === undefined ? "cancel" : "edit";
    return "searching";
  }

  #change(query: string): void {
    this.query = query;
    this.#find(query.length === 0 ? 0 : this.#at, 0);
  }

  /** Moves to the first prompt from `from` on that contains the query, else from `otherwise`. */
  #find(from: number, otherwise?: number): void {
    const holds = (prompt: string): boolean => prompt.toLowerCase().includes(this.query.toLowerCase());
    for (const start of [from, otherwise]) {
      const found = start === undefined ? -1 : this.#prompts.findIndex((each, at) => at >= start && holds(each));
      if (found < 0) continue;
      this.#at = found;
      return;
    }
    if (otherwise !== undefined) this.#at = this.#prompts.length; // nothing matches
  }
}
