/**
 * What nodes tell each other, by NOTIFY: hints, each batch of them a statement of its own after the commits that it
 * speaks of. What is told while a listener's connection is away is lost, so it looks at everything when it is back.
 */
import { createHash } from "node:crypto";
import type { SQL } from "bun";
import { TOPICS, type Topic } from "../peers.ts";

/** News of this time share a notification. */
const GATHER_MS = 5;
/** A notification holds fewer than 8,000 bytes; a piece of news is a topic and at most 64 characters of an id. */
const PER_NOTIFICATION = 80;

type Listener = (topic: Topic, id: string) => void;

export class NewsWire {
  readonly #sql: SQL;
  readonly #channel: string;
  readonly #listeners = new Set<Listener>();
  /** Says whose notifications are our own. */
  readonly #me = crypto.randomUUID().slice(0, 8);
  #waiting = new Set<string>();
  #timer: Timer | undefined;
  #subscription: { unlisten(): Promise<void> } | undefined;

  constructor(sql: SQL, schema: string) {
    this.#sql = sql;
    this.#channel = `hearth_${createHash("sha256").update(schema).digest("hex").slice(0, 32)}`; // names have 63 bytes
  }

  async open(): Promise<void> {
    const onHeard = (payload: string): void => this.#hear(payload);
    this.#subscription = await this.#sql.listen(this.#channel, onHeard, () => this.say("all"));
  }

  async close(): Promise<void> {
    clearTimeout(this.#timer);
    await this.#send();
    await this.#subscription?.unlisten().catch(() => {}); // its connection may be away
  }

  listen(listener: Listener): () => void {
    this.#listeners.add(listener);
    return () => void this.#listeners.delete(listener);
  }

  /** To this node's own listeners. */
  say(topic: Topic, id = ""): void {
    for (const listener of this.#listeners) listener(topic, id);
  }

  /** To the other nodes. */
  tell(topic: Topic, id = ""): void {
    this.#waiting.add(`${topic} ${id}`);
    this.#timer ??= setTimeout(() => void this.#send(), GATHER_MS);
  }

  async #send(): Promise<void> {
    this.#timer = undefined;
    const news = [...this.#waiting];
    this.#waiting = new Set();
    for (let i = 0; i < news.length; i += PER_NOTIFICATION) {
      const payload = [this.#me, ...news.slice(i, i + PER_NOTIFICATION)].join("\n");
      await this.#sql.notify(this.#channel, payload).catch(() => {}); // a hint: the others look now and then
    }
  }

  #hear(payload: string): void {
    const [from, ...news] = payload.split("\n");
    if (from === this.#me) return;
    for (const each of news) {
      const [topic, id = ""] = each.split(" ");
      const known = TOPICS.find((name) => name === topic); // others may be of a later version
      if (known) this.say(known, id);
    }
  }
}
