/**
 * The server as the page asks it: JSON and lines of JSON, with the key that somebody gave for this tab. It knows when
 * the server cannot be reached, and looks for it until it is there again.
 */
import type { Kept } from "./kept.ts";
import { signal, type ReadonlySignal, type Signal } from "@preact/signals";
import { linesOf } from "./lines.ts";
import { sendFile, type UploadOptions } from "./upload.ts";

/** What the server refused, in its words. */
export class Refused extends Error {
  override readonly name = "Refused";
  readonly status: number;

  constructor(status: number, message: string) {
    super(message);
    this.status = status;
  }
}

/** Nothing was heard, or nothing more. */
export class ServerGone extends Error {
  override readonly name = "ServerGone";
}

/** How often a server that is gone is looked for. */
const LOOK_MS = 1500;
const KEY = "hearth-key";

/** Somebody is asked for a key; `answer` takes it, or undefined where they have none. */
export interface KeyQuestion {
  /** Whether a key was tried, and refused. */
  readonly wasRefused: boolean;
  answer(key: string | undefined): void;
}

export interface Ask {
  readonly method?: "GET" | "HEAD" | "POST" | "DELETE" | "PUT";
  readonly body?: object;
  readonly signal?: AbortSignal;
  readonly headers?: Readonly<Record<string, string>>;
  /** A status that carries an answer although it is an error. */
  readonly alsoOk?: number;
  /** Sent to its end also where the tab closes. */
  readonly keepalive?: boolean;
}

export interface Api {
  /** Whether the server answered last time. */
  readonly isReachable: ReadonlySignal<boolean>;
  readonly question: ReadonlySignal<KeyQuestion | undefined>;
  /** Throws `Refused` or `ServerGone`. */
  json<T>(path: string, ask?: Ask): Promise<T>;
  /** Objects, as they come. Throws as `json`, and `Refused` for an object that says what went wrong. */
  lines<T>(path: string, ask: Ask): AsyncGenerator<T, void, void>;
  /** Sends a file as it lies on the disk. Throws as `json`, and the signal's reason. */
  upload(path: string, file: Blob, options: UploadOptions): Promise<void>;
  /** Headers that make a request one of whoever has the key. */
  headers(): Readonly<Record<string, string>>;
  /** Forgets the key of this tab. Returns what brings it back. */
  forgetKey(): () => void;
  hasKey(): boolean;
}

/** Where a path of the server is, whose root is beside the page: a proxy may have both below a path of its own. */
export const addressOf = (path: string): string => new URL(`.${path}`, document.baseURI).href;

/** A key as a header; one with characters that no header can have is no server's, and is left out. */
export const bearer = (key: string | null): Record<string, string> =>
  key === null || /[^\x20-\xff]/.test(key) ? {} : { authorization: `Bearer ${key}` };

export function makeApi({ storage }: { storage: Kept }): Api {
  const isReachable = signal(true);
  const question = signal<KeyQuestion | undefined>(undefined);
  let asked: Promise<boolean> | undefined;

  const headers = (): Record<string, string> => bearer(storage.getItem(KEY));

  /** One question for all requests that were refused. */
  const askForKey = (): Promise<boolean> =>
    (asked ??= new Promise<boolean>((resolve) => {
      question.value = {
        wasRefused: storage.getItem(KEY) !== null,
        answer(key) {
          if (key) storage.setItem(KEY, key);
          question.value = undefined;
          resolve(key !== undefined && key !== "");
        },
      };
    }).finally(() => (asked = undefined)));

  async function send(path: string, ask: Ask): Promise<Response> {
    for (;;) {
      const init = initOf(ask, path.startsWith("/hooks-admin") ? {} : headers());
      const response = await fetch(addressOf(path), init).catch((error: unknown) => {
        if (ask.signal?.aborted) throw error;
        lookForServer(isReachable);
        throw new ServerGone("the server cannot be reached");
      });
      isReachable.value = true;
      if (response.status === 401 && !path.startsWith("/hooks-admin") && (await askForKey())) continue;
      if (response.ok || response.status === ask.alsoOk) return response;
      throw new Refused(response.status, await reasonOf(response));
    }
  }

  return {
    isReachable,
    question,
    headers,
    async upload(path, file, options) {
      const response = await sendFile({ address: addressOf(path), headers: headers(), file, ...options });
      if (response?.ok) return;
      if (response) throw new Refused(response.status, await reasonOf(response));
      lookForServer(isReachable);
      throw new ServerGone("the server went away in the middle of an upload");
    },
    hasKey: () => storage.getItem(KEY) !== null,
    forgetKey() {
      const key = storage.getItem(KEY);
      storage.removeItem(KEY);
      return () => void (key !== null && storage.setItem(KEY, key));
    },
    async json<T>(path: string, ask: Ask = {}): Promise<T> {
      const text = await (await send(path, ask)).text();
      return (text === "" ? {} : JSON.parse(text)) as T; // our own server's
    },
    async *lines<T>(path: string, ask: Ask): AsyncGenerator<T, void, void> {
      const { body } = await send(path, ask);
      if (!body) return;
      try {
        for await (const line of linesOf(body)) {
          const said: unknown = JSON.parse(line);
          const { error } = said as { error?: unknown };
          if (typeof error === "string") throw new Refused(500, error);
          yield said as Awaited<T>;
        }
      } catch (error) {
        if (ask.signal?.aborted || error instanceof Refused) throw error;
        lookForServer(isReachable);
        throw new ServerGone("the server went away in the middle of its answer");
      }
    },
  };
}

function initOf({ method, body, signal, headers, keepalive }: Ask, key: Readonly<Record<string, string>>): RequestInit {
  return {
    method: method ?? (body ? "POST" : "GET"),
    headers: { ...key, ...headers, ...(body ? { "content-type": "application/json" } : {}) },
    ...(body ? { body: JSON.stringify(body) } : {}),
    ...(signal ? { signal } : {}),
    ...(keepalive ? { keepalive } : {}),
  };
}

/** What the server says of a failure, in whichever shape. */
async function reasonOf(response: Response): Promise<string> {
  const text = await response.text().catch(() => "");
  try {
    const { error } = JSON.parse(text) as { error?: string | { message?: string } };
    const message = typeof error === "string" ? error : error?.message;
    if (message) return message;
  } catch {
    // no JSON: the text itself says it
  }
  const isPage = text.trimStart().startsWith("<"); // of a proxy
  return (isPage ? "" : text.slice(0, 300)) || `the server answered with status ${response.status}`;
}

/** Asks again and again, until the server answers. */
function lookForServer(isReachable: Signal<boolean>): void {
  if (!isReachable.peek()) return;
  isReachable.value = false;
  const look = (): void => {
    fetch(addressOf("/api/version"), { cache: "no-store" }).then(
      () => (isReachable.value = true),
      () => setTimeout(look, LOOK_MS),
    );
  };
  setTimeout(look, LOOK_MS);
}
