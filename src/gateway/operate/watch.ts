/**
 * Keeps the gateway's snapshot up to date with its files. A valid change takes effect between two requests; an invalid
 * one is logged, and the last good snapshot stays in force. A changed file of a token or password counts as a change of
 * the snapshot: its users read it anew.
 */
import { statSync } from "node:fs";
import { resolve } from "node:path";
import { type Logger, messageOf } from "../../base/index.ts";
import type { Document } from "../../base/config/index.ts";
import type { GatewaySnapshot } from "./snapshot.ts";

/** Interval of checking the files. A change is read once two checks see the same: editors write in several steps. */
const LOOK_MS = 250;
/** Interval of rereading invalid files. */
const RETRY_MS = 2000;

export interface WatchOptions {
  readonly first: { readonly document: Document; readonly snapshot: GatewaySnapshot };
  /** Reads the files; undefined: they are gone. Throws their error. */
  readonly read: () => { document: Document; snapshot: GatewaySnapshot } | undefined;
  readonly log: Logger;
}

export class ConfigWatch {
  readonly #options: WatchOptions;
  readonly #listeners = new Set<(snapshot: GatewaySnapshot) => void>();
  #current: WatchOptions["first"];
  readonly #timer: ReturnType<typeof setInterval>;
  /** Stamps of the files when they were read, and at the last check; initially unknown: they may have changed. */
  #read = "";
  #seen = "";
  #readAt = 0;
  /** Stamps of the files of tokens and passwords at the last change of the snapshot. */
  #lastSecrets: string;
  /** The current error; undefined: none. */
  #problem: string | undefined;

  /**
   * Polls the files instead of watching their folder: the database is in the same folder, and would wake a watcher many
   * times per request. Polling also notices files that are replaced, created or changed over a network.
   */
  constructor(options: WatchOptions) {
    this.#options = options;
    this.#current = options.first;
    this.#lastSecrets = this.#secretsStamp();
    this.#timer = setInterval(() => this.#look(), LOOK_MS);
    this.#timer.unref();
  }

  /** The current snapshot. Keep it for the duration of one piece of work. */
  snapshot(): GatewaySnapshot {
    return this.#current.snapshot;
  }

  /** The error in the current files; undefined: they are in force. */
  get problem(): string | undefined {
    return this.#problem;
  }

  /** Calls `listener` with every new snapshot. */
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
      if (!next) return log.warn("the configuration file is gone; its last settings stay in force");
      this.#current = next;
    } catch (error) {
      const problem = messageOf(error);
      const isLogged = isSame && problem === this.#problem;
      this.#problem = problem;
      if (!isLogged)
        log.error("reloading the configuration failed; the last valid one stays in force", { error: problem });
      return;
    }
    if (!Bun.deepEquals(before.document.files, this.#current.document.files)) this.#read = this.#seen = "";
    const changed = changedKeys(before, this.#current);
    const secrets = this.#secretsStamp();
    if (changed.length === 0 && secrets === this.#lastSecrets) return;
    this.#lastSecrets = secrets;
    if (changed.length > 0) log.info("configuration reloaded", { changed });
    else log.info("a file with a token or a password has changed");
    const fixed = changed.filter((key) => !LIVE.includes(key));
    if (fixed.length > 0) log.warn("these settings need a restart", { settings: fixed });
    for (const listener of this.#listeners) listener(this.#current.snapshot);
  }

  close(): void {
    clearInterval(this.#timer);
  }

  /** The error may be in an unknown file, an include: the files are reread until they are valid. */
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

/** Files of tokens, passwords and certificates: settings such as `tokenFile`. */
function secretFiles({ channels, hooks, folder }: GatewaySnapshot): string[] {
  const sections = [...Object.values(channels), hooks.mail];
  return sections
    .flatMap((section) => Object.entries(section ?? {}))
    .flatMap(([key, value]) => (key.endsWith("File") && typeof value === "string" ? [resolve(folder, value)] : []));
}

/** Changes with the file, its content, or its permissions. */
function stampOf(path: string): string {
  try {
    const { ino, size, mtimeMs, ctimeMs } = statSync(path);
    return `${ino} ${size} ${mtimeMs} ${ctimeMs}`;
  } catch (error) {
    return messageOf(error); // gone, or unreadable: reading it reports that
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
