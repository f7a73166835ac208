/** Chats as the page holds them: what is looked at, what is being answered, and what tabs tell each other. */
import type { Signal } from "@preact/signals";
import type { AnswerEvent, Answerer } from "./answers.ts";
import type { ChatDatabase } from "./database.ts";
import type { Live } from "./live.ts";
import type { Words } from "../words/index.ts";
import type { Chat, Message, Messages, Picture, Place, TextFile } from "./tree.ts";

/** What somebody wrote. */
export interface Draft {
  readonly content: string;
  readonly pictures: readonly Picture[];
  readonly files: readonly TextFile[];
}

/** A chat that is looked at, or that is answered. */
export interface OpenChat {
  readonly chat: Signal<Chat>;
  readonly messages: Signal<Messages>;
}

export interface Running {
  /** The answers that are being made, by message. */
  readonly lives: ReadonlyMap<string, Live>;
  stop(): void;
}

export interface ChatParts {
  readonly db: ChatDatabase;
  readonly answerers: Readonly<Record<Place, Answerer>>;
  /** Begins to tell what the server is at before it answers; returns what ends that. */
  readonly watchLoad: (take: (event: AnswerEvent) => void) => () => void;
  readonly notify: (text: string) => void;
  readonly words: () => Words;
  /** Undefined where the browser has none: then nothing keeps two tabs apart. */
  readonly locks: LockManager | undefined;
  readonly channel: BroadcastChannel | undefined;
}

/** What was deleted, and how it comes back. */
export interface Removed {
  /** How many messages. */
  readonly messages: number;
  restore(): Promise<void>;
}

/** What tabs tell each other. */
export type News =
  | { readonly kind: "gone"; readonly id: string }
  | { readonly kind: "list" }
  /** `messages`: those that changed; left out: some are gone. */
  | { readonly kind: "chat"; readonly id: string; readonly messages?: readonly string[] };

export interface Answering {
  /** What is answered; a message to go on with is its own answer. */
  readonly parent: string | null;
  readonly goOnWith?: Message;
  readonly model?: string;
  readonly place?: Place;
}

/** A model that answers beside the chat's own. */
export interface AnsweredBy {
  readonly model: string;
  readonly place: Place;
}

export interface Asking {
  /** What the question follows; undefined: the leaf of the chat. */
  readonly parent?: string | null | undefined;
  readonly others?: readonly AnsweredBy[] | undefined;
}
