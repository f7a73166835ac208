/**
 * News between nodes, by NOTIFY: hints, sent in batches after the commits that they announce. A listener without a
 * connection misses news, so it checks everything once it is connected again. It also receives its own news; if these
 * do not arrive, it opens a new connection.
 */
import { createHash } from "node:crypto";
import type { SQL } from "bun";
import { TOPICS, type NewsListener, type Topic } from "../peers.ts";
import { makePool, type ServerOptions } from "./server.ts";

/** News within this time share a notification … */
const GATHER_MS = 5;
/** … and pieces of text within this time. */
const GATHER_TEXT_MS = 50;
/** A node notifies itself this often … */
const CHECK_MS = 5000;
/** … and the listener reconnects after receiving nothing for this long. */
const SILENT_MS = 12_000;
/** Interval of complete checks, for missed news. */
const LOOK_MS = 30_000;
/** Delay after a broken connection. */
const AGAIN_MS = 250;
/** PostgreSQL limits a notification to below 8,000 bytes. */
const BYTES_MAX = 7500;
/** UTF-16 units of a piece of text: at most six bytes each. */
const TEXT_CHARS_MAX = 1000;

export class NewsWire {
  readonly #options: ServerOptions;
  readonly #channel: string;
  readonly #listeners = new Set<NewsListener>();
  /** Marks our own notifications. */
  readonly #me = crypto.randomUUID().slice(0, 8);
  #waiting = new Set<string>();
  #texts = new Map<string, string>();
  #timer: Timer | undefined;
  #textTimer: Timer | undefined;
  #sending: Promise<void> = Promise.resolve();
  /** A connection for listening and one for sending; undefined: they broke. */
  #sql: SQL | undefined;
  #heardAt = 0;
  #check: Timer | undefined;
  #look: Timer | undefined;
  #again: Timer | undefined;
  #isOver = false;

  constructor(options: ServerOptions) {
    this.#options = options;
    // an identifier has at most 63 bytes
    this.#channel = `hearth_${createHash("sha256").update(options.schema).digest("hex").slice(0, 32)}`;
  }

  /** Rejects if the server cannot be reached; later failures are retried. */
  async open(): Promise<void> {
    await this.#connect();
    this.#check = setInterval(() => this.#checkLine(), CHECK_MS);
    this.#look = setInterval(() => this.say("all"), LOOK_MS);
  }

  async close(): Promise<void> {
    this.#isOver = true;
    clearInterval(this.#check);
    clearInterval(this.#look);
    clearTimeout(this.#again);
    this.#send();
    await Promise.race([this.#sending, Bun.sleep(AGAIN_MS)]);
    await this.#sql?.close({ timeout: 0 });
  }

  async #connect(): Promise<void> {
    const sql = makePool({ ...this.#options, connections: 1 }, { onClose: () => this.#broken(sql) });
    this.#sql = sql;
    try {
      await sql.listen(this.#channel, (payload) => this.#hear(payload));
    } catch (error) {
      this.#broken(sql);
      throw error;
    }
    this.#heardAt = performance.now();
    this.say("all");
  }

  /**
   * Reconnects soon, once for each pair of connections, however many errors it reports. The driver would reconnect by
   * itself, and print each try.
   */
  #broken(sql: SQL): void {
    if (this.#isOver || this.#sql !== sql) return;
    this.#sql = undefined;
    void sql.close({ timeout: 0 });
    this.#again = setTimeout(() => void this.#connect().catch(() => {}), AGAIN_MS); // the store logs the reason
  }

  #checkLine(): void {
    const sql = this.#sql;
    if (!sql) return;
    if (performance.now() - this.#heardAt > SILENT_MS) return this.#broken(sql);
    this.#notify(this.#me);
  }

  listen(listener: NewsListener): () => void {
    this.#listeners.add(listener);
    return () => void this.#listeners.delete(listener);
  }

  /** Notifies this node's own listeners. */
  say(topic: Topic, id = "", text = ""): void {
    for (const listener of this.#listeners) listener(topic, id, text);
  }

  /** Notifies the other nodes. */
  tell(topic: Topic, id = "", text = ""): void {
    if (topic === "text") {
      this.#texts.set(id, (this.#texts.get(id) ?? "") + text);
      this.#textTimer ??= setTimeout(() => this.#send(), GATHER_TEXT_MS);
    } else {
      this.#waiting.add(`${topic} ${id}`);
      this.#timer ??= setTimeout(() => this.#send(), GATHER_MS);
    }
  }

  /** Sends texts first: they precede the ends of their runs. */
  #send(): void {
    clearTimeout(this.#timer);
    clearTimeout(this.#textTimer);
    this.#timer = this.#textTimer = undefined;
    const lines = [...[...this.#texts].flatMap(textLines), ...this.#waiting];
    this.#waiting = new Set();
    this.#texts = new Map();
    for (const payload of payloads(this.#me, lines)) this.#notify(payload);
  }

  #notify(payload: string): void {
    const send = (): Promise<void> | undefined => this.#sql?.notify(this.#channel, payload);
    this.#sending = this.#sending.then(send).catch(() => {}); // only a hint, because the other nodes poll, too
  }

  #hear(payload: string): void {
    this.#heardAt = performance.now();
    const [from, ...news] = payload.split("\n");
    if (from === this.#me) return;
    for (const each of news) {
      const [, topic, id, text] = /^(\w+) ([^ ]*)(?: (".*"))?$/s.exec(each) ?? [];
      const known = TOPICS.find((name) => name === topic); // a later version may send other topics
      if (known) this.say(known, id, text === undefined ? "" : (JSON.parse(text) as string)); // see `textLines`
    }
  }
}

function textLines([id, text]: readonly [string, string]): string[] {
  const pieces = Array.from({ length: Math.ceil(text.length / TEXT_CHARS_MAX) }, (_, i) =>
    text.slice(i * TEXT_CHARS_MAX, (i + 1) * TEXT_CHARS_MAX),
  );
  return pieces.map((piece) => `text ${id} ${JSON.stringify(piece)}`);
}

/** As few payloads as hold the lines. */
function payloads(me: string, lines: readonly string[]): string[] {
  const found: string[] = [];
  for (const line of lines) {
    const longer = `${found.at(-1) ?? me}\n${line}`;
    if (found.length > 0 && Buffer.byteLength(longer) <= BYTES_MAX) found[found.length - 1] = longer;
    else found.push(`${me}\n${line}`);
  }
  return found;
}
