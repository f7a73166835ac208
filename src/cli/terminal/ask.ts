/** Questions to the user at a terminal: one line each, with a default for an empty answer; secrets are not echoed. */
import { createInterface } from "node:readline/promises";
import { Writable } from "node:stream";
import { Interrupted } from "./context.ts";
import { plainLine } from "./drawing.ts";
import type { Terminal } from "./terminal.ts";

export interface Question {
  readonly about: string;
  /** The default for an empty answer. */
  readonly initial?: string;
  readonly isSecret?: boolean;
}

/** Asks until there is an answer. Throws `Interrupted` at Ctrl+C and at the end of the input. */
export async function ask(terminal: Terminal, { about, initial, isSecret = false }: Question): Promise<string> {
  const prompt = plainPrompt(initial === undefined ? about : `${about} (${initial})`);
  for (;;) {
    const answer = await readLine(terminal, prompt, isSecret);
    const text = isSecret ? answer : answer.trim();
    if (text !== "") return text;
    if (initial !== undefined) return initial;
  }
}

/** Made plain, because it may contain names from a server. */
const plainPrompt = (text: string): string => `${plainLine(text)}: `;

async function readLine(terminal: Terminal, prompt: string, isSecret: boolean): Promise<string> {
  const { input, output } = terminal;
  const silent = new Writable({ write: (_chunk, _encoding, done) => done() });
  const lines = createInterface({ input, output: isSecret ? silent : output, terminal: true });
  const { promise: gone, reject } = Promise.withResolvers<never>();
  gone.catch(() => {}); // already closed
  const leave = (): void => reject(new Interrupted());
  lines.on("SIGINT", leave);
  lines.on("close", leave);
  try {
    if (isSecret) terminal.write(prompt);
    return await Promise.race([lines.question(isSecret ? "" : prompt), gone]);
  } finally {
    lines.close();
    if (isSecret) terminal.write("\n");
  }
}
