/**
 * Makes the calls of tool servers that an answer ends with, once the user allows them, and lets the model continue with
 * their results. Each call and its result is stored in its message as it happens.
 */
import { signal, type ReadonlySignal } from "@preact/signals";
import { Refused, ServerGone, type Api } from "../base/api.ts";
import type { Chats } from "../chat/chats.ts";
import type { OpenChat } from "../chat/chat-types.ts";
import { pathTo, type CallResult, type Message, type ServerTool, type Standing, type ToolCall } from "../chat/tree.ts";
import type { ToolServers } from "./servers.ts";

/** After this many answers with calls since the user's message, every call needs a decision. */
const ROUNDS_MAX = 10;
/** Characters of a result that are shown. */
const SHOWN_CHARS = 4000;

/** The user's decision about one call. */
export type Decision = "once" | "no" | Standing;

interface CallParts {
  readonly api: Api;
  readonly chats: Chats;
  readonly servers: ToolServers;
  readonly notify: (text: string) => void;
  readonly elsewhere: () => string;
  readonly locks: LockManager | undefined;
}

/** A call of a message. */
interface Place {
  readonly chat: string;
  readonly message: string;
  readonly place: number;
}

const REFUSED = failed("the person refused this call");
const STOPPED = failed("the person stopped this call, which may have had its effect");

export const toolName = ({ server, name }: ServerTool): string => `${server}/${name}`;

/** True for a call that this page makes and has not finished. */
export const isOpen = ({ tool, result }: ToolCall): boolean => tool !== undefined && result === undefined;

export class ToolCalls {
  readonly #parts: CallParts;
  readonly #working = signal<ReadonlyMap<string, AbortController>>(new Map());

  constructor(parts: CallParts) {
    this.#parts = parts;
    let before: ReadonlySet<string> = new Set();
    parts.chats.running.subscribe((running) => {
      for (const id of before) if (!running.has(id)) void this.#answered(id);
      before = new Set(running.keys());
    });
  }

  /** Messages whose calls are under way in this tab. */
  get working(): ReadonlySignal<ReadonlyMap<string, unknown>> {
    return this.#working;
  }

  stop(message: string): void {
    this.#working.peek().get(message)?.abort();
  }

  /** Decides about the first open call of a message, and continues with the calls after it. */
  async decide(at: Place, decision: Decision): Promise<void> {
    await this.#goOn(at.chat, at.message, { place: at.place, decision });
  }

  /** Begins with the calls of a new answer. Calls of an older page wait for the user. */
  async #answered(id: string): Promise<void> {
    const open = await this.#parts.chats.read(id);
    const last = open?.messages.peek().get(open.chat.peek().leaf ?? "");
    if (last && isComplete(last) && last.calls?.some(isOpen)) await this.#goOn(id, last.id);
  }

  async #goOn(chat: string, message: string, given?: { place: number; decision: Decision }): Promise<void> {
    const { locks, chats, notify, elsewhere } = this.#parts;
    if (this.#working.peek().has(message)) return;
    let isDone: boolean | undefined;
    if (!locks) isDone = await this.#work(chat, message, given);
    else {
      await locks.request(`hearth-calls-${chat}`, { ifAvailable: true }, async (lock) => {
        if (lock) isDone = await this.#work(chat, message, given);
        else notify(elsewhere());
      });
    }
    const leaf = (await chats.read(chat))?.chat.peek().leaf;
    if (isDone && leaf === message) await chats.answer(chat, { parent: message });
  }

  /** Makes calls up to the first that needs a decision. Returns true if every call of the message has its result. */
  async #work(chat: string, message: string, given?: { place: number; decision: Decision }): Promise<boolean> {
    const stopping = new AbortController();
    this.#mark(message, stopping);
    try {
      for (;;) {
        const open = await this.#parts.chats.read(chat);
        const calls = open?.messages.peek().get(message)?.calls ?? [];
        const place = calls.findIndex(isOpen);
        const { tool } = calls[place] ?? {};
        if (!open || !tool) return calls.length > 0 && calls.every(({ result }) => result !== undefined);
        const decision = given?.place === place ? given.decision : this.#decided(open, message, tool);
        if (decision === undefined) return false;
        if (decision === "always" || decision === "never") await this.#remember(open, tool, decision);
        const result =
          decision === "no" || decision === "never"
            ? REFUSED
            : await this.#call({ chat, message, place }, calls[place]!, stopping.signal);
        if (!result || !(await this.#parts.chats.setCall(chat, message, place, { result }))) return false;
      }
    } finally {
      this.#mark(message, undefined);
    }
  }

  #mark(message: string, stopping: AbortController | undefined): void {
    const all = new Map(this.#working.peek());
    if (stopping) all.set(message, stopping);
    else all.delete(message);
    this.#working.value = all;
  }

  /** The decision of the user or the configuration about a tool; undefined: the user is asked. */
  #decided({ chat, messages }: OpenChat, message: string, tool: ServerTool): Decision | undefined {
    const standing = chat.peek().standing?.[toolName(tool)];
    if (standing === "never") return standing;
    const path = pathTo(messages.peek(), message);
    const question = path.findLastIndex(({ role }) => role === "user");
    if (path.slice(question + 1).length > ROUNDS_MAX) return undefined;
    return standing === "always" || this.#parts.servers.isHarmless(tool) ? "once" : undefined;
  }

  async #remember({ chat }: OpenChat, tool: ServerTool, decision: Standing): Promise<void> {
    const { id, standing } = chat.peek();
    await this.#parts.chats.change(id, { standing: { ...standing, [toolName(tool)]: decision } });
  }

  /** Undefined: the server went away, and the end of the call is unknown. */
  async #call({ chat, message, place }: Place, call: ToolCall, stop: AbortSignal): Promise<CallResult | undefined> {
    const { server, name } = call.tool!; // #work checked that it is set
    await this.#parts.chats.setCall(chat, message, place, { isBegun: true });
    try {
      const body = { server, tool: name, arguments: call.arguments };
      const said = await this.#parts.api.json<{ text: string; content: string; is_error: boolean }>("/api/mcp/call", {
        body,
        signal: stop,
      });
      return { content: said.content, ...shownOf(said.text), isError: said.is_error };
    } catch (error) {
      if (stop.aborted) return STOPPED;
      if (error instanceof ServerGone) return undefined;
      if (error instanceof Refused) return failed(error.message);
      throw error;
    }
  }
}

/** An answer that stands alone and did not end early. */
const isComplete = ({ role, state, together }: Message): boolean =>
  role === "assistant" && state === undefined && together !== true;

function failed(why: string): CallResult {
  return { content: `error: ${why}`, ...shownOf(why), isError: true };
}

function shownOf(text: string): Pick<CallResult, "text" | "isCut"> {
  return { text: text.slice(0, SHOWN_CHARS), isCut: text.length > SHOWN_CHARS };
}
