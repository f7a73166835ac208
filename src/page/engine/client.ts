/**
 * A page's interface to its Worker: models in its storage, and a runner with the same async iterators as the server's
 * runners. Ending an iterator stops the model before its next step.
 */
import { AppError } from "../../base/index.ts";
import type { LoadMessage } from "../../engine/index.ts";
import { connect, type ConnectOptions, RunnerClient } from "../../runtime/portable.ts";
import type { PageFile } from "./files.ts";
import type { Download, StoreHearer } from "./storage.ts";
import type { FromWorker, ToWorker } from "./worker.ts";

/** The used part of a Worker. */
export interface PageWorker {
  postMessage(message: ToWorker): void;
  addEventListener(kind: "message", listener: (event: { readonly data: FromWorker }) => void): void;
  addEventListener(kind: "error", listener: (event: { readonly message?: string }) => void): void;
  removeEventListener(kind: "message", listener: (event: { readonly data: FromWorker }) => void): void;
  terminate(): void;
}

/**
 * Has a Worker load a model; `files` maps the paths of the model, its adapters and its projector to files. Throws
 * errors of the files and of loading, and ends the Worker then.
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

/** Downloads a model into the page's storage, resuming a partial download. Throws like `storeModel`. */
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

/** The names of complete models in the page's storage. */
export function listStored(worker: PageWorker): Promise<readonly string[]> {
  return ask(worker, { kind: "list" }, (answer) => (answer.kind === "models" ? { value: answer.names } : undefined));
}

/** Deletes a stored model, complete or partial. */
export async function removeStored(worker: PageWorker, name: string): Promise<void> {
  await ask(worker, { kind: "remove", name }, (answer) =>
    answer.kind === "removed" ? { value: undefined } : undefined,
  );
}

/** Sends a message and waits until `read` recognises an answer; throws the Worker's error. */
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
