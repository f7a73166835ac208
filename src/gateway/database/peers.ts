/**
 * The processes (nodes) that share one database, as seen by one of them. A process that does not share its database
 * holds every lease, and gets only its own news; `postgres/cluster.ts` implements shared databases.
 */
import { Type } from "@sinclair/typebox";
import { type Output, strictObject } from "../../base/schema.ts";
import { hostname } from "node:os";
import type { Transaction } from "./store.ts";

/**
 * Notifications between nodes, sent after the commit. They are hints: polling finds what a node missed.
 * - `turns`, `callbacks`, `outbox`, `heartbeat`: some may be due
 * - `run`, `cancel`, `watch`: the run with this id changed, shall end, or has a reader of its stream
 * - `text`: a piece of a run's text
 * - `pause`: it began, or ended
 * - `all`: look at everything, because news may have been missed, a node left, or a pause ended
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

/** A task that one node at a time does for all. */
export interface Lease {
  /** True if this node holds it, as far as it knows without asking. */
  readonly isHeld: boolean;
  /** True if this node holds it, in the transaction that depends on it. */
  holds(): Transaction<boolean>;
  /** Calls `listener` whenever `isHeld` changes. */
  onChange(listener: (isHeld: boolean) => void): void;
}

/** A node as operators see it. */
export const nodeSchema = strictObject({
  number: Type.Integer({ description: "Number of the node; never reused" }),
  name: Type.String({ description: "Its host" }),
  version: Type.String(),
  digest: Type.String({ description: "Equal for equal configurations" }),
  digestAt: Type.Integer({ description: "Since when, epoch milliseconds" }),
  startedAt: Type.Integer(),
  seenAt: Type.Integer(),
  leads: Type.Array(Type.String(), { description: "What it does for all" }),
});
export type NodeStatus = Readonly<Output<typeof nodeSchema>>;

/** Tokens that a node has taken from a shared bucket, which refills over time. */
export interface Spent {
  /** The limit's id. */
  readonly id: string;
  readonly taken: number;
  /** Capacity of the bucket, in tokens. */
  readonly burst: number;
  readonly perMs: number;
}

export interface Peers {
  /** The owner name of this node in rows. It changes when the other nodes remove this node. */
  readonly me: string;
  /** Number of nodes that this one knows, itself included. */
  readonly count: number;
  /** The given owners that have left. */
  gone(owners: readonly string[]): Transaction<string[]>;
  /** All nodes, the oldest first; empty if the database is this process's alone. */
  nodes(): Transaction<readonly NodeStatus[]>;
  /** True if all nodes have paused their turns. */
  readonly isPaused: boolean;
  /**
   * The pause outlives all processes. Each node hears `all` when it ends. Rejects with `storage` if it cannot be
   * stored.
   */
  setPaused(isPaused: boolean): Promise<void>;
  /** Joins the election of a lease. The same name is the same lease. */
  lease(name: string): Lease;
  /** Records spent tokens; returns the tokens left in each bucket, negative if nodes overspent. */
  readonly spend?: (spent: readonly Spent[]) => Promise<readonly number[]>;
  /** @param text for the topic `text`; pieces close together are joined */
  tell(topic: Topic, id?: string, text?: string): void;
  /** Calls `listener` with news; returns a function that removes the listener. */
  onNews(listener: NewsListener): () => void;
  /**
   * Calls `listener` when this node loses all that it holds: the other nodes have removed it, or it has not reached the
   * database for too long.
   */
  onLost(listener: () => void): () => void;
  /**
   * Calls the listeners of `onLost` now if this node has not reached the database for too long. A timer does so
   * too, but too late in a process that was suspended: call it before each effect outside of the database.
   */
  readonly checkTime: () => void;
}

const HELD: Lease = { isHeld: true, holds: () => held(), onChange: () => {} };

function* held(): Transaction<boolean> {
  yield* [];
  return true;
}

const thisProcess = (): string => [hostname(), process.pid, performance.timeOrigin].join("/");

/** A stored pause, and the function that stores each change. */
export interface KeptPause {
  readonly isPaused: boolean;
  keep(isPaused: boolean): Promise<unknown>;
}

/**
 * A process that has its database to itself: all earlier processes have ended. It compares no process ids, which
 * containers reuse.
 * @param pause absent: a pause ends with the process
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
    checkTime: () => {},
  };
}
