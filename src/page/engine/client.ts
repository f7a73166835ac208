/**
 * What a page has of its Worker: models in its storage, and a runner that is asked as the server's runners are, by
 * async iterators. Ending one of those stops the model before its next step.
 */
import { AppError } from "../../base/index.ts";
import type { LoadMessage } from "../../engine/index.ts";
import { connect, type ConnectOptions, RunnerClient } from "../../runtime/portable.ts";
import type { PageFile } from "./files.ts";
import type { Download, StoreHearer } from "./storage.ts";
import type { FromWorker, ToWorker } from "./worker.ts";

/** As much of a Worker as is used. */
export interface PageWorker {
  postMessage(message: ToWorker): void;
  addEventListener(kind: "message", heard: (event: { readonly data: FromWorker }) => void): void;
  addEventListener(kind: "error", heard: (event: { readonly message?: string }) => void): void;
  removeEventListener(kind: "message", heard: (event: { readonly data: FromWorker }) => void): void;
  terminate(): void;
}

/**
 * Has a Worker load a model, whose path and those of its adapters `files` says where to find.
 * Throws what is wrong with one of them, and what loading throws; the Worker is ended then.
 */
export async function startRunner(
  worker: PageWorker,
  load: LoadMessage,
  { files, signal, ...options }: ConnectOptions & { files: Readonly<Record<string, PageFile>>; signal: AbortSignal },
): Promise<RunnerClient> {
  const ended = Promise.withResolvers<AppError>();
  worker.addEventListener("error", ({ message }) => {
    worker.terminate();
    ended.resolve(new AppError("runner", `the model's Worker has unexpectedly stopped: ${message || "no reason"}`));
  });
  const connected = await connect(
    load,
    (receive) => {
      worker.addEventListener("message", ({ data }) => {
        if (data.kind === "ended") ended.resolve(new AppError("runner", "the model's Worker was closed"));
        else if (!isOfFiles(data)) receive(data);
      });
      for (const [path, file] of Object.entries(files)) worker.postMessage({ kind: "mount", path, file });
      return {
        send: (message) => worker.postMessage(message),
        kill() {
          worker.terminate();
          ended.resolve(new AppError("runner", "the model's Worker was ended"));
        },
        exited: ended.promise,
      };
    },
    { options, signal },
  );
  return new RunnerClient(connected);
}

/** Brings a model into the page's storage, or goes on with that. Throws as `storeModel`. */
export async function storeInPage(
  worker: PageWorker,
  download: Download,
  { onProgress, onBusy }: Partial<StoreHearer> = {},
): Promise<void> {
  await ask(worker, { kind: "store", download }, (answer) => {
    if (answer.kind === "storing") onProgress?.(answer);
    if (answer.kind === "busy") onBusy?.();
    return answer.kind === "stored" ? { value: undefined } : undefined;
  });
}

/** The names of models that are in the page's storage whole. */
export function listStored(worker: PageWorker): Promise<readonly string[]> {
  return ask(worker, { kind: "list" }, (answer) => (answer.kind === "models" ? { value: answer.names } : undefined));
}

/** Forgets a stored model, and what was begun of it. */
export async function removeStored(worker: PageWorker, name: string): Promise<void> {
  await ask(worker, { kind: "remove", name }, (answer) =>
    answer.kind === "removed" ? { value: undefined } : undefined,
  );
}

/** Sends a message and waits for what `read` finds an answer in; throws what the Worker says went wrong. */
async function ask<T>(
  worker: PageWorker,
  message: ToWorker,
  read: (answer: FromWorker) => { readonly value: T } | undefined,
): Promise<T> {
  const { promise, resolve, reject } = Promise.withResolvers<T>();
  const hear = ({ data }: { readonly data: FromWorker }): void => {
    if (data.kind === "failed") return reject(new AppError(data.code, data.message));
    const found = read(data);
    if (found) resolve(found.value);
  };
  worker.addEventListener("message", hear);
  try {
    worker.postMessage(message);
    return await promise;
  } finally {
    worker.removeEventListener("message", hear);
  }
}

const FILE_KINDS = ["mounted", "storing", "busy", "stored", "models", "removed"] as const;
type OfFiles = Extract<FromWorker, { kind: (typeof FILE_KINDS)[number] }>;

const OF_FILES: ReadonlySet<string> = new Set(FILE_KINDS);

const isOfFiles = (message: FromWorker): message is OfFiles => OF_FILES.has(message.kind);
