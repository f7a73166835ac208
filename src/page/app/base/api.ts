/**
 * The page's connection to the server: JSON and lines of JSON, with the key entered in this tab. It notices when the
 * server is unreachable, and polls until it is back.
 */
import type { Kept } from "./kept.ts";
import { signal, type ReadonlySignal, type Signal } from "@preact/signals";
import { linesOf } from "./lines.ts";
import { sendFile, type UploadOptions } from "./upload.ts";

/** An error answer of the server, with its text. */
export class Refused extends Error {
  override readonly name = "Refused";
  readonly status: number;

  constructor(status: number, message: string) {
    super(message);
    this.status = status;
  }
}

/** The connection failed, or broke off. */
export class ServerGone extends Error {
  override readonly name = "ServerGone";
}

/** Interval of polling an unreachable server. */
const LOOK_MS = 1500;
const KEY = "hearth-key";

/** A question for the API key; `answer` takes it, or undefined to cancel. */
export interface KeyQuestion {
  /** True if a key was tried and refused. */
  readonly wasRefused: boolean;
  answer(key: string | undefined): void;
}

export interface Ask {
  readonly method?: "GET" | "HEAD" | "POST" | "DELETE" | "PUT";
  readonly body?: object;
  readonly signal?: AbortSignal;
  readonly headers?: Readonly<Record<string, string>>;
  /** An error status whose body is an answer. */
  readonly alsoOk?: number;
  /** True: the request outlives the tab. */
  readonly keepalive?: boolean;
}

export interface Api {
  /** True if the server answered last time. */
  readonly isReachable: ReadonlySignal<boolean>;
  readonly question: ReadonlySignal<KeyQuestion | undefined>;
  /** True once the user gave no key; while it is, no request asks for one. */
  readonly isKeyMissing: Signal<boolean>;
  /** Throws `Refused` or `ServerGone`. */
  json<T>(path: string, ask?: Ask): Promise<T>;
  /** Yields objects as they arrive. Throws like `json`, and `Refused` for an error object. */
  lines<T>(path: string, ask: Ask): AsyncGenerator<T, void, void>;
  /** Sends a file unchanged. Throws like `json`, and the signal's reason. */
  upload(path: string, file: Blob, options: UploadOptions): Promise<void>;
  /** Headers with the key. */
  headers(): Readonly<Record<string, string>>;
  /** Forgets the key of this tab. Returns a function that restores it. */
  forgetKey(): () => void;
  hasKey(): boolean;
}

/**
 * The URL of a server path: the server's root is relative to the page, because a proxy may serve both below another
 * path.
 */
export const addressOf = (path: string): string => new URL(`.${path}`, document.baseURI).href;

/** The header of a key; empty for a key with characters that no header can hold. */
export const bearer = (key: string | null): Record<string, string> =>
  key === null || /[^\x20-\xff]/.test(key) ? {} : { authorization: `Bearer ${key}` };

export function makeApi({ storage }: { storage: Kept }): Api {
  const isReachable = signal(true);
  const question = signal<KeyQuestion | undefined>(undefined);
  const isKeyMissing = signal(false);

  const headers = (): Record<string, string> => bearer(storage.getItem(KEY));
  const askForKey = makeAskForKey({ storage, question, isKeyMissing });

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
    isKeyMissing,
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
      return (text === "" ? {} : JSON.parse(text)) as T; // our own server's format
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

interface KeyParts {
  readonly storage: Kept;
  readonly question: Signal<KeyQuestion | undefined>;
  readonly isKeyMissing: Signal<boolean>;
}

/** Asks once for all refused requests. The result is true once a key was given. */
function makeAskForKey({ storage, question, isKeyMissing }: KeyParts): () => Promise<boolean> {
  let asked: Promise<boolean> | undefined;
  const ask = (): Promise<boolean> =>
    new Promise((resolve) => {
      question.value = {
        wasRefused: storage.getItem(KEY) !== null,
        answer(key) {
          if (key) storage.setItem(KEY, key);
          question.value = undefined;
          isKeyMissing.value = !key;
          resolve(!isKeyMissing.value);
        },
      };
    });
  return async () => !isKeyMissing.peek() && (asked ??= ask().finally(() => (asked = undefined)));
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

/** The server's error text, in any error format. */
async function reasonOf(response: Response): Promise<string> {
  const text = await response.text().catch(() => "");
  try {
    const { error } = JSON.parse(text) as { error?: string | { message?: string } };
    const message = typeof error === "string" ? error : error?.message;
    if (message) return message;
  } catch {
    // not JSON: use the text itself
  }
  const isPage = text.trimStart().startsWith("<"); // an error page of a proxy
  return (isPage ? "" : text.slice(0, 300)) || `the server answered with status ${response.status}`;
}

/** Polls until the server answers. */
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
