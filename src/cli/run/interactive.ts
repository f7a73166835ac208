/** The conversation at a terminal: prompts and answers until the user leaves. */
import { join } from "node:path";
import { messageOf } from "../../base/index.ts";
import type { CliContext } from "../terminal/context.ts";
import { Chat, type ChatSettings } from "./chat.ts";
import { runCommand } from "./commands.ts";
import { History } from "./history.ts";
import { beginsWithImage } from "./image-paths.ts";
import { PromptLines } from "./prompt-lines.ts";
import type { RunTools } from "./tools.ts";

/** Ctrl+C just before or after an answer, while the keyboard changes hands, does not end the conversation. */
const stay = (): void => {};

export async function converse(
  context: CliContext,
  settings: ChatSettings,
  { remembers, tools }: { readonly remembers: boolean; readonly tools: RunTools | undefined },
): Promise<void> {
  const { terminal } = context;
  const chat = new Chat(settings, tools);
  const history = new History(join(context.home, "history"));
  const lines = new PromptLines({ terminal, history, editor: context.editor });
  lines.keepsHistory = remembers;
  try {
    for (;;) {
      const next = lines.next();
      process.off("SIGINT", stay);
      const prompt = await next;
      if (prompt === undefined) return;
      const isQuestion = !prompt.startsWith("/") || beginsWithImage(prompt);
      if (isQuestion) process.on("SIGINT", stay);
      lines.rest();
      if (prompt.trim() === "") continue;
      try {
        if (isQuestion) {
          await context.interruptible((signal) => chat.ask(context, prompt, signal));
          terminal.write("\n");
        } else if (!(await runCommand({ context, chat, lines }, prompt))) return;
      } catch (error) {
        terminal.note(`Error: ${messageOf(error)}`);
      }
    }
  } finally {
    process.off("SIGINT", stay);
    lines.close();
  }
}
