/**
 * What nodes tell each other, by NOTIFY: hints, each batch of them a statement of its own after the commits that it
 * speaks of. What is told while a listener's connection is away is lost, so it looks at everything when it is back. A
 * listener hears itself too: where that fails, its connection leads nowhere, and it makes another.
 */
import { createHash } from "node:crypto";
import type { SQL } from "bun";
import { TOPICS, type NewsListener, type Topic } from "../peers.ts";
import { makePool, type ServerOptions } from "./server.ts";

/** News of this time share a notification … */
const GATHER_MS = 5;
/** … and pieces of text of this one. */
const GATHER_TEXT_MS = 50;
/** How often a node speaks to itself … */
const CHECK_MS = 5000;
/** … and how long it may hear nothing. */
const SILENT_MS = 12_000;
/** How often everything is looked at, for what was missed. */
const LOOK_MS = 30_000;
/** After a connection that broke. */
const AGAIN_MS = 250;
/** A notification holds fewer than 8,000 bytes. */
const BYTES_MAX = 7500;
/** Of a piece of text: a character is six bytes at most. */
const TEXT_CHARS_MAX = 1000;

export class NewsWire {
  readonly #options: ServerOptions;
  readonly #channel: string;
  readonly #listeners = new Set<NewsListener>();
  /** Says whose notifications are our own. */
  readonly #me = crypto.randomUUID().slice(0, 8);
  #waiting = new Set<string>();
  #texts = new Map<string, string>();
  #timer: Timer | undefined;
  #textTimer: Timer | undefined;
  #sending: Promise<void> = Promise.resolve();
  /** One connection that listens and one that speaks; undefined: they broke. */
  #sql: SQL | undefined;
  #heardAt = 0;
  #check: Timer | undefined;
  #look: Timer | undefined;
  #again: Timer | undefined;
  #isOver = false;

  constructor(options: ServerOptions) {
    this.#options = options;
    this.#channel = `hearth_${createHash("sha256").update(options.schema).digest("hex").slice(0, 32)}`; // 63 bytes at most
  }

  /** Rejects where the server cannot be reached; later that is tried again. */
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
   * Makes another one soon, once for each, however many of its connections say that they broke. The driver would make
   * its connection again by itself, and tell the terminal of each try.
   */
  #broken(sql: SQL): void {
    if (this.#isOver || this.#sql !== sql) return;
    this.#sql = undefined;
    void sql.close({ timeout: 0 });
    this.#again = setTimeout(() => void this.#connect().catch(() => {}), AGAIN_MS); // the store says why
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

  /** To this node's own listeners. */
  say(topic: Topic, id = "", text = ""): void {
    for (const listener of this.#listeners) listener(topic, id, text);
  }

  /** To the other nodes. */
  tell(topic: Topic, id = "", text = ""): void {
    if (topic === "text") {
      this.#texts.set(id, (this.#texts.get(id) ?? "") + text);
      this.#textTimer ??= setTimeout(() => this.#send(), GATHER_TEXT_MS);
    } else {
      this.#waiting.add(`${topic} ${id}`);
      this.#timer ??= setTimeout(() => this.#send(), GATHER_MS);
    }
  }

  /** Texts first: they came before the ends of their runs. */
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
    this.#sending = this.#sending.then(send).catch(() => {}); // a hint: the others look now and then
  }

  #hear(payload: string): void {
    this.#heardAt = performance.now();
    const [from, ...news] = payload.split("\n");
    if (from === this.#me) return;
    for (const each of news) {
      const [, topic, id, text] = /^(\w+) ([^ ]*)(?: (".*"))?$/s.exec(each) ?? [];
      const known = TOPICS.find((name) => name === topic); // others may be of a later version
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

/** As few as hold the lines. */
function payloads(me: string, lines: readonly string[]): string[] {
  const found: string[] = [];
  for (const line of lines) {
    const longer = `${found.at(-1) ?? me}\n${line}`;
    if (found.length > 0 && Buffer.byteLength(longer) <= BYTES_MAX) found[found.length - 1] = longer;
    else found.push(`${me}\n${line}`);
  }
  return found;
}
