/**
 * The chats of this browser: the list, the open chat, and running answers. Every change is saved and announced to other
 * tabs; only one tab at a time answers in a chat.
 */
import { batch, signal, type ReadonlySignal } from "@preact/signals";
import { makeId } from "../base/ids.ts";
import { questionOf, resultsOf, startOf, writeAnswer, type ToolResult } from "./answering.ts";
import type {
  AnsweredBy,
  Answering,
  Asking,
  ChatParts,
  NewMessage,
  News,
  OpenChat,
  Removed,
  Running,
} from "./chat-types.ts";
import { asInterrupted, asStopped, notSaved } from "./ends.ts";
import { makeLive, nextFrame, type Live } from "./live.ts";
import { titleFields } from "./titles.ts";
import {
  columnsOf,
  leafUnder,
  pathTo,
  withDescendants,
  withoutMark,
  type Chat,
  type Message,
  type Messages,
  type ToolCall,
} from "./tree.ts";

const SAVE_MS = 1000;
const lockName = (chat: string): string => `hearth-chat-${chat}`;

export class Chats {
  readonly #parts: ChatParts;
  readonly #list = signal<readonly Chat[]>([]);
  readonly #open = signal<OpenChat | undefined>(undefined);
  readonly #running = signal<ReadonlyMap<string, Running>>(new Map());
  /** Id of the chat to show. */
  #wanted: string | undefined;
  /** Chats that are shown, or being answered. */
  readonly #held = new Map<string, OpenChat>();
  /** Chats being answered in another tab, which may close. */
  readonly #followed = new Set<string>();

  constructor(parts: ChatParts) {
    this.#parts = parts;
    parts.channel?.addEventListener("message", ({ data }: MessageEvent<News>) => void this.#hear(data));
  }

  /** Newest first. */
  get list(): ReadonlySignal<readonly Chat[]> {
    return this.#list;
  }

  get open(): ReadonlySignal<OpenChat | undefined> {
    return this.#open;
  }

  /** The message found by a search: the chat scrolls to it. */
  readonly sought = signal<string | undefined>(undefined);

  /** By chat. */
  get running(): ReadonlySignal<ReadonlyMap<string, Running>> {
    return this.#running;
  }

  async loadList(): Promise<void> {
    const chats = await this.#parts.db.chats();
    this.#list.value = chats.toSorted((a, b) => b.updated - a.updated);
  }

  /** Shows a chat, or none for `undefined`. The last call wins, whichever read ends first. */
  async show(id: string | undefined): Promise<void> {
    this.#wanted = id;
    const found = id === undefined ? undefined : await this.read(id);
    const isWanted = this.#wanted === id;
    const left = isWanted ? this.#open.peek()?.chat.peek().id : id;
    if (left !== undefined && left !== this.#wanted && !this.#running.peek().has(left)) this.#held.delete(left);
    if (isWanted) this.#open.value = found;
  }

  /** Starts a chat with a question. Returns its id. */
  async begin(
    about: Pick<Chat, "model" | "place" | "system" | "options" | "tools" | "think" | "servers">,
    draft: NewMessage,
    others?: readonly AnsweredBy[],
  ) {
    const at = Date.now();
    const chat: Chat = { id: makeId(at), title: "", titled: "line", at, updated: at, leaf: null, ...about };
    this.#held.set(chat.id, { chat: signal(chat), messages: signal<Messages>(new Map()) });
    await this.show(chat.id);
    void this.ask(chat.id, draft, { others });
    return chat.id;
  }

  /**
   * Asks the next question of a chat, at its leaf or as a sibling of another message. Returns false if the chat is
   * being answered already.
   * @param others models that answer in addition to the chat's own
   */
  async ask(id: string, draft: NewMessage, { parent, others }: Asking = {}): Promise<boolean> {
    const open = await this.read(id);
    if (!open || this.#refusesNow(id)) return false;
    if (await this.#isAnsweredElsewhere(id)) {
      this.#parts.notify(this.#parts.words().chat.elsewhere);
      return false;
    }
    const question = questionOf(id, parent === undefined ? open.chat.peek().leaf : parent, draft);
    await this.#put(open, [question], { leaf: question.id, ...titleFields(this.#parts.words(), open, question) });
    void this.answer(id, { parent: question.id }, others);
    return true;
  }

  /** Stores the results of tools; once every call of a message has one, the model continues. */
  async giveResults(id: string, parent: string, results: readonly ToolResult[]) {
    const open = await this.read(id);
    if (!open || this.#isBusy(id)) return;
    const messages = resultsOf(id, parent, results);
    const last = messages.at(-1)?.id ?? parent;
    await this.#put(open, messages, { leaf: last });
    await this.answer(id, { parent: last });
  }

  /** Stores the state of a call. Returns false if its message is gone. */
  async setCall(id: string, message: string, place: number, fields: Partial<ToolCall>): Promise<boolean> {
    const open = await this.read(id);
    const found = open?.messages.peek().get(message);
    const call = found?.calls?.[place];
    if (!open || !found?.calls || !call) return false;
    await this.#put(open, [{ ...found, calls: found.calls.with(place, { ...call, ...fields }) }], {});
    return true;
  }

  /** Lets one or several models answer until each is done, stopped, or failed, which the messages record. */
  async answer(id: string, answering: Answering, others: readonly AnsweredBy[] = []): Promise<void> {
    const open = await this.read(id);
    if (!open || this.#refusesNow(id)) return;
    const { locks, notify, words } = this.#parts;
    if (!locks) return this.#answer(open, answering, others);
    await locks.request(lockName(id), { ifAvailable: true }, async (lock) => {
      if (lock) return this.#answer(open, answering, others);
      notify(words().chat.elsewhere);
      return undefined;
    });
  }

  stop(id: string): void {
    this.#running.peek().get(id)?.stop();
  }

  /** Replaces the text of a message; the messages after it stay. */
  async rewrite(id: string, message: string, content: string): Promise<void> {
    const open = await this.read(id);
    const found = open?.messages.peek().get(message);
    if (!open || !found) return;
    const changed = { ...found, content };
    await this.#put(open, [changed], titleFields(this.#parts.words(), open, changed));
  }

  /** Shows the newest path through a message. */
  async choose(id: string, message: string): Promise<void> {
    const open = await this.read(id);
    if (open) await this.#put(open, [], { leaf: leafUnder(open.messages.peek(), message) });
  }

  /** Continues with one of several simultaneous answers; the others become branches. */
  async settle(id: string, message: Message): Promise<void> {
    const open = await this.read(id);
    if (!open || this.#refusesNow(id)) return;
    const group = columnsOf(open.messages.peek(), message);
    await this.#put(open, group.map(withoutMark), { leaf: message.id });
  }

  /** Shows the newest path through a message, scrolled to that message. */
  async reveal(id: string, message: string): Promise<void> {
    await this.choose(id, message);
    this.sought.value = message;
  }

  async change(id: string, fields: Partial<Omit<Chat, "id">>): Promise<void> {
    const open = await this.read(id);
    if (open) await this.#put(open, [], fields);
  }

  /** Deletes a message and everything after it, on every branch. */
  async removeMessage(id: string, message: Message): Promise<Removed | undefined> {
    const open = await this.read(id);
    if (!open || this.#refusesNow(id)) return undefined;
    const all = open.messages.peek();
    const { leaf } = open.chat.peek();
    const gone = withDescendants(all, message.id);
    await this.#parts.db.removeMessages(gone);
    open.messages.value = new Map([...open.messages.peek()].filter(([each]) => !gone.has(each)));
    const beside = [...open.messages.peek().values()].findLast(({ parent }) => parent === message.parent);
    const left = beside ? leafUnder(open.messages.peek(), beside.id) : message.parent;
    await this.#put(open, [], { leaf: left });
    this.#tell({ kind: "chat", id });
    const records = [...gone].flatMap((each) => all.get(each) ?? []);
    return { messages: records.length, restore: () => this.#restoreMessages(id, records, { leaf, left }) };
  }

  /** @param at the leaf before and after the deletion: a chat that has moved on keeps its leaf */
  async #restoreMessages(id: string, messages: readonly Message[], at: { leaf: string | null; left: string | null }) {
    const open = await this.read(id);
    if (!open) return;
    const fields = open.chat.peek().leaf === at.left ? { leaf: at.leaf } : {};
    // saved before it is shown, because the user may close the tab at once
    await this.#parts.db.save({ messages, chats: [{ ...open.chat.peek(), ...fields }] });
    await this.#put(open, messages, fields);
  }

  async remove(id: string): Promise<Removed> {
    const chat = this.#list.peek().find((each) => each.id === id);
    const messages = await this.#parts.db.messages(id);
    this.#held.delete(id);
    this.stop(id);
    await this.#parts.db.removeChat(id);
    if (this.#open.peek()?.chat.peek().id === id) this.#open.value = undefined;
    this.#list.value = this.#list.peek().filter((each) => each.id !== id);
    this.#tell({ kind: "gone", id });
    const restore = (): Promise<void> => this.add(chat ? [chat] : [], messages.map(asStopped));
    return { messages: messages.length, restore };
  }

  /** Adds the chats of a file. */
  async add(chats: readonly Chat[], messages: readonly Message[]): Promise<void> {
    await this.#parts.db.save({ chats, messages });
    await this.loadList();
    this.#tell({ kind: "list" });
  }

  async everything(): Promise<{ chats: Chat[]; messages: Message[] }> {
    const messages: Message[] = [];
    await this.#parts.db.scan((message) => {
      messages.push(message);
      return false;
    });
    return { chats: await this.#parts.db.chats(), messages };
  }

  #isBusy(id: string): boolean {
    return this.#running.peek().has(id);
  }

  /** True while a chat is being answered, and says so to the user. */
  #refusesNow(id: string): boolean {
    if (this.#isBusy(id)) this.#parts.notify(this.#parts.words().chat.busy);
    return this.#isBusy(id);
  }

  async read(id: string): Promise<OpenChat | undefined> {
    const held = this.#held.get(id);
    if (held) return held;
    const chat =
      this.#list.peek().find((each) => each.id === id) ?? (await this.#parts.db.chats()).find((each) => each.id === id);
    if (!chat) return undefined;
    const messages = await this.#read(id);
    const open = this.#held.get(id) ?? { chat: signal(chat), messages: signal(messages) };
    this.#held.set(id, open);
    return open;
  }

  async #read(id: string): Promise<Messages> {
    const [messages, busy] = await Promise.all([this.#parts.db.messages(id), this.#isAnsweredElsewhere(id)]);
    if (busy) void this.#follow(id);
    const settled = busy ? messages : messages.map((each) => asInterrupted(this.#parts.words(), each));
    return new Map(settled.toSorted((a, b) => (a.id < b.id ? -1 : 1)).map((each) => [each.id, each]));
  }

  /** A closed tab sends no message: once no tab holds a chat's lock, an unfinished answer is over. */
  async #follow(id: string): Promise<void> {
    const { locks } = this.#parts;
    if (!locks || this.#followed.has(id)) return;
    this.#followed.add(id);
    await locks.request(lockName(id), { mode: "shared" }, () => {}).finally(() => this.#followed.delete(id));
    const held = this.#held.get(id);
    if (!held || this.#isBusy(id)) return;
    const messages = await this.#read(id);
    if (!this.#isBusy(id)) held.messages.value = messages;
  }

  async #isAnsweredElsewhere(id: string): Promise<boolean> {
    const { held = [] } = (await this.#parts.locks?.query()) ?? {};
    return held.some(({ name }) => name === lockName(id));
  }

  async #answer(open: OpenChat, answering: Answering, others: readonly AnsweredBy[]): Promise<void> {
    const chat = open.chat.peek();
    const all: readonly Answering[] = [answering, ...others.map((by) => ({ ...by, parent: answering.parent }))];
    const mark = others.length > 0 ? { together: true } : {};
    const starts = all.map((each, i) => ({ ...startOf(chat, each, i), ...mark }));
    const stopping = new AbortController();
    const lives = new Map(starts.map((start) => [start.id, makeLive(start, nextFrame)]));
    this.#setRunning(chat.id, { lives, stop: () => stopping.abort() });
    await this.#put(open, starts, { leaf: starts[0]!.id });
    const unfinished = new Set(lives.values());
    const save = (): void =>
      void this.#save(
        Array.from(unfinished, (live) => live.message()),
        chat.id,
      );
    const saving = setInterval(save, SAVE_MS);
    const write = async (live: Live): Promise<void> => {
      const { id } = live.message();
      const path = pathTo(open.messages.peek(), answering.goOnWith ? id : answering.parent);
      const message = await writeAnswer(this.#parts, { chat, path, live, signal: stopping.signal });
      unfinished.delete(live);
      if (unfinished.size === 0) clearInterval(saving);
      await this.#end(open, message);
    };
    await Promise.all(Array.from(lives.values(), write));
  }

  /** Marks an answer as over only once it is saved: from then on it can be answered again. */
  async #end(open: OpenChat, message: Message): Promise<void> {
    const id = message.chat;
    const isGone = (): boolean => this.#held.get(id) !== open; // the chat was deleted
    if (!isGone()) await this.#save([message], id, { ...open.chat.peek(), updated: Date.now() });
    const running = this.#running.peek().get(id);
    const lives = new Map(running?.lives);
    lives.delete(message.id);
    batch(() => {
      this.#setRunning(id, running && lives.size > 0 ? { ...running, lives } : undefined);
      if (!isGone()) this.#show(open, [message], {});
    });
    if (lives.size === 0 && this.#open.peek() !== open) this.#held.delete(id);
  }

  #setRunning(id: string, running: Running | undefined): void {
    const all = new Map(this.#running.peek());
    if (running) all.set(id, running);
    else all.delete(id);
    this.#running.value = all;
  }

  /** Changes a chat and some of its messages, in memory and in the database. */
  async #put(open: OpenChat, messages: readonly Message[], fields: Partial<Chat>): Promise<void> {
    const chat = this.#show(open, messages, fields);
    await this.#save(messages, chat.id, chat);
  }

  #show(open: OpenChat, messages: readonly Message[], fields: Partial<Chat>): Chat {
    if (messages.length > 0) {
      const all = new Map(open.messages.peek());
      for (const message of messages) all.set(message.id, message);
      open.messages.value = all;
    }
    const chat: Chat = {
      ...open.chat.peek(),
      ...fields,
      updated: messages.length > 0 ? Date.now() : open.chat.peek().updated,
    };
    open.chat.value = chat;
    this.#list.value = [chat, ...this.#list.peek().filter(({ id }) => id !== chat.id)].toSorted(
      (a, b) => b.updated - a.updated,
    );
    return chat;
  }

  async #save(messages: readonly Message[], id: string, chat?: Chat): Promise<void> {
    try {
      await this.#parts.db.save({ messages, ...(chat ? { chats: [chat] } : {}) });
      this.#tell({ kind: "chat", id, messages: messages.map((each) => each.id) });
    } catch (error) {
      const words = this.#parts.words();
      this.#parts.notify(words.chat.notSaved(notSaved(words, error)));
    }
  }

  #tell(news: News): void {
    this.#parts.channel?.postMessage(news);
  }

  /** Applies a change made in another tab. */
  async #hear(news: News): Promise<void> {
    if (news.kind === "list") return this.loadList();
    if (news.kind === "gone") {
      this.#held.delete(news.id);
      this.stop(news.id);
      if (this.#open.peek()?.chat.peek().id === news.id) this.#open.value = undefined;
      return this.loadList();
    }
    await this.loadList();
    const held = this.#held.get(news.id);
    const chat = this.#list.peek().find(({ id }) => id === news.id);
    if (!held || !chat) return;
    const isBusy = this.#isBusy(news.id); // then the chat shows the answer, and its state here will be saved
    held.chat.value = isBusy ? { ...chat, leaf: held.chat.peek().leaf } : chat;
    if (isBusy) return;
    const changed = await (news.messages ? this.#parts.db.some(news.messages) : this.#parts.db.messages(news.id));
    if (changed.some(({ state }) => state === "running")) void this.#follow(news.id);
    const kept = news.messages ? held.messages.peek() : [];
    held.messages.value = new Map([...kept, ...changed.map((each) => [each.id, each] as const)]);
  }
}
