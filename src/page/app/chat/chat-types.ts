/** Chats in memory: open ones, running answers, and messages between tabs. */
import type { Signal } from "@preact/signals";
import type { AnswerEvent, Answerer } from "./answers.ts";
import type { ChatDatabase } from "./database.ts";
import type { Live } from "./live.ts";
import type { OfferedTool } from "../tools/servers.ts";
import type { Words } from "../words/index.ts";
import type { Chat, Message, Messages, Picture, Place, TextFile } from "./tree.ts";

/** A message as the user wrote it. */
export interface NewMessage {
  readonly content: string;
  readonly pictures: readonly Picture[];
  readonly files: readonly TextFile[];
}

/** A chat that is shown, or being answered. */
export interface OpenChat {
  readonly chat: Signal<Chat>;
  readonly messages: Signal<Messages>;
}

export interface Running {
  /** The running answers, by message. */
  readonly lives: ReadonlyMap<string, Live>;
  stop(): void;
}

export interface ChatParts {
  readonly db: ChatDatabase;
  readonly answerers: Readonly<Record<Place, Answerer>>;
  /** The tools of some tool servers. A server that does not answer is reported and left out. */
  readonly offer: (servers: readonly string[], signal: AbortSignal) => Promise<readonly OfferedTool[]>;
  /** Reports the server's progress before the answer; returns a function that stops it. */
  readonly watchLoad: (take: (event: AnswerEvent) => void) => () => void;
  readonly notify: (text: string) => void;
  readonly words: () => Words;
  /** Undefined in browsers without locks: then tabs are not coordinated. */
  readonly locks: LockManager | undefined;
  readonly channel: BroadcastChannel | undefined;
}

/** A deletion, and its undo. */
export interface Removed {
  /** Number of deleted messages. */
  readonly messages: number;
  restore(): Promise<void>;
}

/** Messages between tabs. */
export type News =
  | { readonly kind: "gone"; readonly id: string }
  | { readonly kind: "list" }
  /** `messages`: the changed ones; absent: some were deleted. */
  | { readonly kind: "chat"; readonly id: string; readonly messages?: readonly string[] };

export interface Answering {
  /** The message to answer; a continued message is its own answer. */
  readonly parent: string | null;
  readonly goOnWith?: Message;
  readonly model?: string;
  readonly place?: Place;
}

/** A model that answers in addition to the chat's own. */
export interface AnsweredBy {
  readonly model: string;
  readonly place: Place;
}

export interface Asking {
  /** The message before the question; undefined: the leaf of the chat. */
  readonly parent?: string | null | undefined;
  readonly others?: readonly AnsweredBy[] | undefined;
}
