/**
 * A runner in a Worker of a page: the same engine, told the same messages as a runner's process. Before it loads a
 * model, it is told which files the model's path, and those of adapters, stand for.
 */
import { chooseAmong } from "../backend/choose.ts";
import { systemLoop } from "../base/event-loop.ts";
import { AppError, messageOf, type Code } from "../base/errors.ts";
import type { ByteSource } from "../gguf/source.ts";
import type { FromRunner, ToRunner } from "../runner/messages.ts";
import { startRunner } from "../runner/runner.ts";
import { pageBackends } from "./backends.ts";
import { openPageFile, type PageFile } from "./files.ts";

/** Page → Worker. `mount` is answered by `mounted` or `failed`. */
export type ToWorker = ToRunner | { readonly kind: "mount"; readonly path: string; readonly file: PageFile };
/** Worker → page. */
export type FromWorker = FromRunner | { readonly kind: "mounted"; readonly path: string };

/** As much of a Worker's global scope as is used. */
export interface WorkerScope {
  postMessage(message: FromWorker): void;
  addEventListener(kind: "message", heard: (event: { readonly data: ToWorker }) => void): void;
  close(): void;
}

/** Answers the page that started this Worker, until it is told to close. */
export function startWorkerRunner(scope: WorkerScope): void {
  const files = new Map<string, ByteSource>();
  const backends = pageBackends();
  let told: (message: ToRunner) => void = () => {};
  startRunner(
    {
      send: (message) => scope.postMessage(message),
      onMessage: (handle) => void (told = handle),
      onDisconnect: () => {}, // a page takes its Workers with it
      exit: () => scope.close(),
    },
    {
      loop: systemLoop(),
      open(path) {
        const file = files.get(path);
        if (file) return file;
        throw new AppError("not_found", `${path}: no such file`);
      },
      chooseBackend: (name, offload) => chooseAmong(backends, name, offload),
    },
  );
  scope.addEventListener("message", ({ data }) => {
    if (data.kind === "mount") void mount(data);
    else told(data);
  });

  async function mount({ path, file }: Extract<ToWorker, { kind: "mount" }>): Promise<void> {
    try {
      files.set(path, await openPageFile(file));
      scope.postMessage({ kind: "mounted", path });
    } catch (error) {
      const code: Code = error instanceof AppError ? error.code : "runner";
      scope.postMessage({ kind: "failed", code, message: messageOf(error) });
    }
  }
}
