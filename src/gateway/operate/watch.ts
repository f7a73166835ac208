/**
 * Keeps the gateway's snapshot true to its files. A change that is right takes effect between two requests; one that is
 * wrong is logged, and the last good snapshot stays in force. A change of a token's or password's own file is told as
 * one of the snapshot is: who uses it reads it anew.
 */
import { statSync } from "node:fs";
import { resolve } from "node:path";
import { type Logger, messageOf } from "../../base/index.ts";
import type { Document } from "../../base/config/index.ts";
import type { GatewaySnapshot } from "./snapshot.ts";

/** How often files are looked at. What changed is read once it looks the same twice: editors write in several steps. */
const LOOK_MS = 250;
/** How often files that were wrong are read again. */
const RETRY_MS = 2000;

export interface WatchOptions {
  readonly first: { readonly document: Document; readonly snapshot: GatewaySnapshot };
  /** Reads the files anew; undefined: they are gone. Throws what is wrong with them. */
  readonly read: () => { document: Document; snapshot: GatewaySnapshot } | undefined;
  readonly log: Logger;
}

export class ConfigWatch {
  readonly #options: WatchOptions;
  readonly #listeners = new Set<(snapshot: GatewaySnapshot) => void>();
  #current: WatchOptions["first"];
  readonly #timer: ReturnType<typeof setInterval>;
  /** How the files looked when they were read, and at the last look; at first not known: they may have changed. */
  #read = "";
  #seen = "";
  #readAt = 0;
  /** How the files of tokens and passwords looked when the snapshot was last told of. */
  #told: string;
  /** What was wrong with them; undefined: nothing. */
  #problem: string | undefined;

  /**
   * The files are looked at, not their folder watched: the database is written to in the same folder, and would wake a
   * watcher many times for every request. It also finds what is replaced, made anew or changed over a network.
   */
  constructor(options: WatchOptions) {
    this.#options = options;
    this.#current = options.first;
    this.#told = this.#secretsStamp();
    this.#timer = setInterval(() => this.#look(), LOOK_MS);
    this.#timer.unref();
  }

  /** As of now. Keep it for as long as one piece of work takes. */
  snapshot(): GatewaySnapshot {
    return this.#current.snapshot;
  }

  /** Why the files as they are now are refused; undefined: they are in force. */
  get problem(): string | undefined {
    return this.#problem;
  }

  /** Hears of every new snapshot. */
  onChange(listener: (snapshot: GatewaySnapshot) => void): void {
    this.#listeners.add(listener);
  }

  /** Reads the files now. */
  reload(): void {
    const stamp = this.#stamp();
    const isSame = stamp === this.#read;
    this.#read = stamp;
    this.#readAt = performance.now();
    const { read, log } = this.#options;
    const before = this.#current;
    try {
      const next = read();
      this.#problem = undefined;
      if (!next) return log.warn("the configuration file is gone; what it said last stays");
      this.#current = next;
    } catch (error) {
      const problem = messageOf(error);
      const isTold = isSame && problem === this.#problem;
      this.#problem = problem;
      if (!isTold) log.error("the configuration was not reloaded; the last good one stays", { error: problem });
      return;
    }
    if (!Bun.deepEquals(before.document.files, this.#current.document.files)) this.#read = this.#seen = "";
    const changed = changedKeys(before, this.#current);
    const secrets = this.#secretsStamp();
    if (changed.length === 0 && secrets === this.#told) return;
    this.#told = secrets;
    if (changed.length > 0) log.info("configuration reloaded", { changed });
    else log.info("a file of a token or a password has changed");
    const fixed = changed.filter((key) => !LIVE.includes(key));
    if (fixed.length > 0) log.warn("these settings need a restart", { settings: fixed });
    for (const listener of this.#listeners) listener(this.#current.snapshot);
  }

  close(): void {
    clearInterval(this.#timer);
  }

  /** What is wrong may be in a file that is not known yet, an include: it is read again until it is right. */
  #look(): void {
    const before = this.#seen;
    this.#seen = this.#stamp();
    if (this.#seen !== before) return;
    const mayBeRight = this.#problem !== undefined && performance.now() - this.#readAt >= RETRY_MS;
    if (this.#seen !== this.#read || mayBeRight) this.reload();
  }

  #stamp(): string {
    return [...this.#current.document.files.map(stampOf), this.#secretsStamp()].join("\n");
  }

  #secretsStamp(): string {
    return secretFiles(this.#current.snapshot).map(stampOf).join("\n");
  }
}

/** Files that settings name for a token, a password or a certificate: `tokenFile` and its like. */
function secretFiles({ channels, hooks, folder }: GatewaySnapshot): string[] {
  const sections = [...Object.values(channels), hooks.mail];
  return sections
    .flatMap((section) => Object.entries(section ?? {}))
    .flatMap(([key, value]) => (key.endsWith("File") && typeof value === "string" ? [resolve(folder, value)] : []));
}

/** Another one for another file, other contents, or other rights to read them. */
function stampOf(path: string): string {
  try {
    const { ino, size, mtimeMs, ctimeMs } = statSync(path);
    return `${ino} ${size} ${mtimeMs} ${ctimeMs}`;
  } catch (error) {
    return messageOf(error); // gone, or not to be read: reading it says so
  }
}

/** Sections that take effect at once. */
const LIVE: readonly string[] = ["hooks", "agents", "session", "channels", "gateway"];

/** Top-level keys whose values differ. */
function changedKeys(before: WatchOptions["first"], after: WatchOptions["first"]): string[] {
  const [old, now] = [before.document.root, after.document.root];
  const keys = new Set([...Object.keys(old), ...Object.keys(now)]);
  return [...keys].filter((key) => !Bun.deepEquals(old[key], now[key]));
}
