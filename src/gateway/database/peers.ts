/**
 * The processes that work on one database, each a node, as one of them sees the others. A process that has its database
 * for itself holds every lease and hears only of its own pauses; `postgres/cluster.ts` has those that share one.
 */
import { hostname } from "node:os";
import type { Script } from "./store.ts";

/**
 * What nodes tell each other, after the commit that made it so. A hint: what is not heard is found by looking.
 * - `turns`, `callbacks`, `outbox`, `heartbeat`: some may be due
 * - `run`, `cancel`, `watch`: the run of this id changed, is to end, or has somebody who reads its text as it comes
 * - `text`: a piece of a run's text
 * - `pause`: it began, or is over
 * - `all`: look at everything, because news may have been missed, a node went, or a pause is over
 */
export const TOPICS = [
  "turns",
  "callbacks",
  "outbox",
  "heartbeat",
  "run",
  "cancel",
  "watch",
  "text",
  "pause",
  "all",
] as const;
export type Topic = (typeof TOPICS)[number];

export type NewsListener = (topic: Topic, id: string, text: string) => void;

/** Something that one node at a time does for all. */
export interface Lease {
  /** Whether it is this node's, as far as it can tell without asking. */
  readonly isHeld: boolean;
  /** Whether it is this node's, in the transaction that depends on it. */
  holds(): Script<boolean>;
  /** Calls whenever `isHeld` changes. */
  onChange(listener: (isHeld: boolean) => void): void;
}

/** A node as operators see it. Times are epoch milliseconds. */
export interface NodeStatus {
  readonly number: number;
  readonly name: string;
  readonly version: string;
  /** Of its configuration: equal where that is. */
  readonly digest: string;
  readonly digestAt: number;
  readonly startedAt: number;
  readonly seenAt: number;
  /** Names of leases. */
  readonly leads: readonly string[];
}

/** What a node took from a limit that all nodes share: a bucket of tokens, which fills by itself. */
export interface Spent {
  /** Of the limit. */
  readonly id: string;
  readonly taken: number;
  /** Tokens at most. */
  readonly burst: number;
  readonly perMs: number;
}

export interface Peers {
  /** What rows name that this node holds. Another one after the others gave this node up. */
  readonly me: string;
  /** How many nodes there are as far as this one has seen, itself among them. */
  readonly count: number;
  /** Of owners that rows name, those that hold nothing any more. */
  gone(owners: readonly string[]): Script<string[]>;
  /** All nodes, the oldest first; none where the database is this process's alone. */
  nodes(): Script<readonly NodeStatus[]>;
  /** Whether no node begins turns. */
  readonly isPaused: boolean;
  /**
   * Until it is said again, also after the end of all processes. Each node hears `all` when a pause is over. Rejects
   * with `storage` where that cannot be kept.
   */
  setPaused(isPaused: boolean): Promise<void>;
  /** Takes part in leading something. The same name is the same lease. */
  lease(name: string): Lease;
  /** Notes what was taken; returns the tokens that each has left, less than none where nodes took too many. */
  readonly spend?: (spent: readonly Spent[]) => Promise<readonly number[]>;
  /** @param text of `text`; pieces of one moment are told as one */
  tell(topic: Topic, id?: string, text?: string): void;
  /** Calls with what there is to hear; returns what stops that. */
  onNews(listener: NewsListener): () => void;
  /** Calls when this node can hold nothing: it was given up, or cannot reach the database for too long. */
  onLost(listener: () => void): () => void;
}

const HELD: Lease = { isHeld: true, holds: () => held(), onChange: () => {} };

function* held(): Script<boolean> {
  yield* [];
  return true;
}

const thisProcess = (): string => [hostname(), process.pid, performance.timeOrigin].join("/");

/** A pause as it was found, and what keeps each change of it. */
export interface KeptPause {
  readonly isPaused: boolean;
  keep(isPaused: boolean): Promise<unknown>;
}

/**
 * A process that has its database for itself: every other process that held something in it has ended. No process
 * number is looked at, which in containers come again.
 * @param pause absent: a pause is over with the process
 */
export function alone(pause?: KeptPause): Peers {
  const own = `${thisProcess()}/`;
  const listeners = new Set<NewsListener>();
  let isPaused = pause?.isPaused ?? false;
  return {
    get isPaused() {
      return isPaused;
    },
    async setPaused(given) {
      await pause?.keep(given);
      isPaused = given;
      if (!given) for (const listener of listeners) listener("all", "", "");
    },
    me: `${own}${crypto.randomUUID()}`,
    count: 1,
    *gone(owners) {
      yield* [];
      return owners.filter((owner) => !owner.startsWith(own));
    },
    *nodes() {
      yield* [];
      return [];
    },
    lease: () => HELD,
    tell: () => {},
    onNews(listener) {
      listeners.add(listener);
      return () => void listeners.delete(listener);
    },
    onLost: () => () => {},
  };
}
