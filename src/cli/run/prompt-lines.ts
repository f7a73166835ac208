/**
 * Prompt lines: edited with the usual keys of shells, with a persistent history. Lines between `"""` and lines of one
 * paste are one prompt, and so is `/set system """` up to its closing quote.
 */
import { createInterface, emitKeypressEvents, type Interface, type Key } from "node:readline";
import { messageOf } from "../../base/index.ts";
import { joined, plain, sequences } from "../terminal/drawing.ts";
import type { Terminal } from "../terminal/terminal.ts";
import { editText } from "./editor.ts";
import type { History } from "./history.ts";
import { HistorySearch } from "./search.ts";

const PROMPT = ">>> ";
const CONTINUATION = "... ";
const PLACEHOLDER = plain("Send a message (/? for help)");
/** A command whose text may continue over several lines, until its closing quote. */
const QUOTING_COMMAND = /^\s*\/set\s+system\s+(?=""")/;

type KeyListener = (typed: string | undefined, key: Key | undefined) => void;

interface PromptLinesOptions {
  readonly terminal: Terminal;
  readonly history: History;
  /** Command that opens a file in an editor; undefined: not set. */
  readonly editor: string | undefined;
}

/** The line editor, with fields missing from its types. */
type Lines = Interface & { history: string[]; historyIndex: number };

export class PromptLines {
  readonly #terminal: Terminal;
  readonly #history: History;
  readonly #editor: string | undefined;
  readonly #lines: Lines;
  /** Passes keys to the editor, which processes the whole line for each: a paste is passed in one piece. */
  readonly #edit: KeyListener;
  #pasted: string[] | undefined;
  #isPasting = false;
  /** Set during a history search, with the line before it. */
  #search: { readonly history: HistorySearch; readonly before: string } | undefined;
  #isEmpty = true;
  #held: string[] = [];
  /** Lines that arrived in one piece with an earlier one, while no prompt was open. */
  readonly #ahead: string[] = [];
  #wanted: ((prompt: string | undefined) => void) | undefined;
  #isClosed = false;
  keepsHistory = true;

  constructor({ terminal, history, editor }: PromptLinesOptions) {
    this.#terminal = terminal;
    this.#history = history;
    this.#editor = editor;
    emitKeypressEvents(terminal.input);
    terminal.input.on("keypress", (typed, key) => this.#onKey(typed, key)); // registered before the editor's listener
    this.#lines = createInterface({
      input: terminal.input,
      output: terminal.output,
      terminal: true,
      history: [...history.prompts],
      historySize: Infinity, // readline's own history is replaced for each prompt
    }) as Lines;
    this.#edit = terminal.input.listeners("keypress").at(-1) as KeyListener; // added by the line above
    // a recalled message of several lines contains returns
    this.#lines.on("line", (line) => this.#onLine(line.replaceAll("\r", "\n")));
    this.#lines.on("SIGINT", () => this.#onInterrupt());
    this.#lines.on("SIGCONT", () => this.#goOn());
    this.#lines.on("close", () => this.#end());
    terminal.draw(sequences.reportPastes);
  }

  /** The next prompt; undefined at the end of the input. */
  async next(): Promise<string | undefined> {
    if (this.#isClosed) return undefined;
    const { promise, resolve } = Promise.withResolvers<string | undefined>();
    this.#wanted = resolve;
    this.#lines.resume();
    this.#ask();
    for (const line of this.#ahead.splice(0)) this.#onLine(line); // restores lines that no prompt has read
    return promise;
  }

  /** Releases the keyboard until the next prompt; Ctrl+C then reaches the process. */
  rest(): void {
    this.#lines.pause();
    this.#terminal.input.setRawMode(false);
  }

  close(): void {
    this.#lines.close();
  }

  #ask(): void {
    this.#terminal.input.setRawMode(true);
    const isFirst = this.#held.length === 0;
    this.#lines.setPrompt(isFirst ? PROMPT : CONTINUATION);
    this.#lines.prompt();
    this.#isEmpty = isFirst;
    if (!isFirst) return;
    this.#terminal.draw(joined([this.#terminal.grey(PLACEHOLDER), sequences.left(PLACEHOLDER.length)]));
  }

  #onKey(typed: string | undefined, key: Key | undefined): void {
    // the first key removes the placeholder
    if (this.#isEmpty && this.#wanted) this.#terminal.draw(sequences.eraseToEnd);
    this.#isEmpty = false;
    if (this.#search) this.#onSearchKey(typed, key);
    else if (key?.ctrl && key.name === "r" && this.#wanted && !this.#pasted) this.#startSearch();
    else if (key?.ctrl && key.name === "g" && this.#wanted && !this.#pasted) this.#openEditor();
    else if (key?.name === "paste-start") this.#startPaste();
    else if (key?.name === "paste-end") this.#endPaste();
    else if (this.#pasted && key?.ctrl && key.name === "c") {
      this.#pasted = []; // the end of the paste got lost
      this.#endPaste();
      this.#onInterrupt();
    } else if (typed && /[\P{Cc}\r\n\t]/u.test(typed)) this.#pasted?.push(typed);
  }

  #startPaste(): void {
    this.#pasted = [];
    this.#terminal.input.off("keypress", this.#edit);
  }

  #endPaste(): void {
    if (!this.#pasted) return;
    const text = this.#pasted.join("");
    this.#pasted = undefined;
    this.#terminal.input.on("keypress", this.#edit);
    this.#isPasting = true;
    this.#lines.write(text);
    this.#isPasting = false;
  }

  #startSearch(): void {
    this.#search = { history: new HistorySearch(this.#history.prompts), before: this.#lines.line };
    this.#terminal.input.off("keypress", this.#edit);
    this.#recall("");
    this.#drawSearch(this.#search.history);
  }

  #onSearchKey(typed: string | undefined, key: Key | undefined): void {
    const { history, before } = this.#search!; // the caller checked it
    const state = history.onKey(typed, key);
    if (state === "searching") return this.#drawSearch(history);
    this.#search = undefined;
    this.#terminal.input.on("keypress", this.#edit);
    this.#terminal.draw(sequences.eraseLine);
    this.#recall(state === "cancel" ? before : (history.match ?? before));
    if (state === "send") this.#lines.write(null, { name: "return" });
  }

  #drawSearch({ query, match = "" }: HistorySearch): void {
    const line = `(search) ${query}: ${match}`.replace(/\s+/g, " ");
    // wide characters take two columns
    const shown = Array.from(line).slice(0, Math.floor((this.#terminal.width ?? 80) / 2));
    const isCut = Bun.stringWidth(line) >= (this.#terminal.width ?? 80);
    this.#terminal.draw(joined([sequences.eraseLine, plain(isCut ? `${shown.join("")}…` : line)]));
  }

  /** Opens the typed text in the editor. */
  #openEditor(): void {
    const typed = [...this.#held, this.#lines.line].join("\n").replaceAll("\r", "\n");
    this.#terminal.draw(sequences.ignorePastes);
    this.#terminal.input.setRawMode(false);
    let text = typed;
    try {
      text = editText(typed.replace(/^\s*"""\n?/, "").replace(/\n?"""\s*$/, ""), this.#editor);
      this.#held = [];
      this.#lines.setPrompt(PROMPT);
    } catch (error) {
      this.#terminal.note(`\nError: ${messageOf(error)}`);
      text = this.#lines.line;
    } finally {
      this.#terminal.input.setRawMode(true);
      this.#terminal.draw(sequences.reportPastes);
    }
    this.#recall(text.includes("\n") ? `"""${text}"""` : text);
  }

  /** Puts a text into the line, also of several lines: only the editor's own recall can do that. */
  #recall(text: string): void {
    Object.assign(this.#lines, { line: "", cursor: 0 });
    if (text === "") return this.#lines.prompt(true);
    this.#lines.history.unshift(text);
    this.#lines.historyIndex = -1;
    this.#lines.write(null, { name: "up" });
  }

  #onLine(line: string): void {
    if (this.#isPasting) {
      this.#held.push(line);
      return;
    }
    if (!this.#wanted) {
      this.#ahead.push(line);
      return;
    }
    const prompt = this.#complete(line);
    if (prompt === undefined) this.#ask();
    else this.#deliver(prompt);
  }

  /** The whole prompt, or undefined while a quote is open. */
  #complete(line: string): string | undefined {
    this.#held.push(line);
    const text = this.#held.join("\n");
    const command = QUOTING_COMMAND.exec(text)?.[0] ?? "";
    const quoted = text.slice(command.length).trim();
    if (quoted.startsWith('"""')) {
      if (quoted.length < 6 || !quoted.endsWith('"""')) return undefined;
      this.#held = [];
      const body = quoted.slice(3, -3).replace(/^\n|\n$/g, "");
      return command === "" ? body : `${command}"""${body}"""`;
    }
    this.#held = [];
    return text;
  }

  #deliver(prompt: string): void {
    if (prompt.trim() !== "") this.#remember(prompt);
    const resolve = this.#wanted;
    this.#wanted = undefined;
    resolve?.(prompt);
  }

  /** At the prompt Ctrl+C discards the typed text. */
  #onInterrupt(): void {
    const typed = this.#lines.line !== "" || this.#held.length > 0;
    this.#held = [];
    this.#terminal.write(typed ? "\n" : "\nUse Ctrl + d or /bye to exit.\n");
    this.#lines.write(null, { ctrl: true, name: "u" });
    this.#ask();
  }

  /** After SIGCONT: the shell has used the terminal, and the editor has paused. */
  #goOn(): void {
    this.#terminal.draw(sequences.reportPastes);
    this.#lines.prompt(true);
  }

  #end(): void {
    if (this.#isClosed) return;
    this.#isClosed = true;
    this.#terminal.draw(sequences.ignorePastes);
    if (this.#wanted) this.#terminal.write("\n");
    this.#wanted?.(undefined);
    this.#wanted = undefined;
  }

  #remember(prompt: string): void {
    const typed = prompt.includes("\n") && !QUOTING_COMMAND.test(prompt) ? `"""${prompt}"""` : prompt;
    this.#history.add(typed);
    this.#lines.history.splice(0, Infinity, ...this.#history.prompts); // a message as a whole, not its lines
    if (!this.keepsHistory) return;
    try {
      this.#history.save(typed);
    } catch (error) {
      this.keepsHistory = false; // the conversation continues without history
      this.#terminal.note(`Warning: prompts cannot be saved: ${messageOf(error)}`);
    }
  }
}
