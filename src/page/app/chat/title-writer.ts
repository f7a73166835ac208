/** Has models write titles of answered chats, while no answer is running. */
import type { ReadonlySignal } from "@preact/signals";
import type { Models } from "../models/models.ts";
import type { Answerer } from "./answers.ts";
import type { Chats } from "./chats.ts";
import type { OpenChat } from "./chat-types.ts";
import { cleanTitle, parametersOf } from "./titles.ts";
import { pathTo, toolsOf, wireMessages } from "./tree.ts";

/** Idle time before a model is asked, because the user may be about to send the next message. */
const IDLE_MS = 1000;
const TOKENS_MAX = 24;
/** Smaller models write poor titles. */
const PARAMETERS_MIN = 1e9;
/** A longer chat gets no title: it was tried before, and reading the chat again may take long. */
const MESSAGES_MAX = 6;

const ASK =
  "Write a title for this conversation: two to six words, in the language of my first message. " +
  "Answer with the title alone, without quotes.";

interface TitleParts {
  readonly chats: Chats;
  readonly models: Pick<Models, "find">;
  readonly answer: Answerer;
  /** `on` or `off`. */
  readonly isOn: ReadonlySignal<string>;
}

/** Starts writing titles. */
export function writeTitles({ chats, models, answer, isOn }: TitleParts): void {
  let before: ReadonlySet<string> = new Set();
  const due = new Set<string>();
  let asking: AbortController | undefined;
  let timer: ReturnType<typeof setTimeout> | undefined;

  const askAll = async (): Promise<void> => {
    const mine = new AbortController();
    asking = mine;
    for (const id of due) {
      if (mine.signal.aborted) return;
      await askFor(id, mine.signal).catch(() => {}); // on failure the title is unchanged
      if (!mine.signal.aborted) due.delete(id);
    }
  };
  const askFor = async (id: string, signal: AbortSignal): Promise<void> => {
    const found = await chats.read(id);
    const question = found && questionOf(found);
    if (!question) return;
    let said = "";
    for await (const event of answer(question, signal)) if (event.kind === "text") said += event.text;
    const title = cleanTitle(said);
    const now = await chats.read(id);
    if (title === "" || signal.aborted || now?.chat.peek().titled !== "line") return;
    if (now.chat.peek().title === found.chat.peek().title) await chats.change(id, { title, titled: "model" });
  };
  const questionOf = ({ chat, messages }: OpenChat) => {
    const { model, place, titled, system, leaf, options, tools } = chat.peek();
    const size = parametersOf(models.find(model)?.details.parameter_size);
    const path = pathTo(messages.peek(), leaf);
    const last = path.at(-1);
    if (place !== "server" || titled !== "line" || size === undefined || size < PARAMETERS_MIN) return undefined;
    if (path.length > MESSAGES_MAX || last?.role !== "assistant" || last.content === "" || last.calls) return undefined;
    // the chat and one more question: the server has cached the chat
    const said = [...wireMessages(system, path), { role: "user", content: ASK }];
    const more = { options: { ...options, num_predict: TOKENS_MAX }, think: false, tools: toolsOf(tools) };
    return { model, messages: said, ...more };
  };

  chats.running.subscribe((running) => {
    for (const id of before) if (!running.has(id)) due.add(id);
    before = new Set(running.keys());
    clearTimeout(timer);
    if (running.size > 0) asking?.abort();
    else if (due.size > 0 && isOn.peek() === "on") timer = setTimeout(() => void askAll(), IDLE_MS);
    if (isOn.peek() !== "on") due.clear();
  });
}
