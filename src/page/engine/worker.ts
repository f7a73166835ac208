/**
 * A runner in a page's Worker: the same engine, with the same messages as a runner's process. Before it loads a model,
 * it is sent the files of the paths of the model, its adapters and its projector.
 */
import {
  type ByteSource,
  chooseAmong,
  type FromRunner,
  startRunner,
  systemLoop,
  type ToRunner,
} from "../../engine/portable.ts";
import { AppError, codeOf, messageOf } from "../../base/index.ts";
import { makePageBackends } from "./backends.ts";
import { openPageFile, type PageFile } from "./files.ts";
import { removeModel, storedModels, storeModel, type Download } from "./storage.ts";

/** Page → Worker, handled in order. A failure is answered by `failed`. */
export type ToWorker =
  | ToRunner
  /** Maps `path` to this file; answered by `mounted`. */
  | { readonly kind: "mount"; readonly path: string; readonly file: PageFile }
  /** Answered by `storing`, once or more often, and `stored`. */
  | { readonly kind: "store"; readonly download: Download }
  /** Lists the stored models; answered by `models`. */
  | { readonly kind: "list" }
  /** Answered by `removed`. */
  | { readonly kind: "remove"; readonly name: string };

/** Worker → page. */
export type FromWorker =
  | FromRunner
  /** The last message. */
  | { readonly kind: "ended" }
  | { readonly kind: "mounted"; readonly path: string }
  /** Bytes. */
  | { readonly kind: "storing"; readonly name: string; readonly done: number; readonly total: number }
  /** Another tab is storing it, and this one waits. */
  | { readonly kind: "busy"; readonly name: string }
  | { readonly kind: "stored"; readonly name: string }
  | { readonly kind: "models"; readonly names: readonly string[] }
  | { readonly kind: "removed"; readonly name: string };

/** The used part of a Worker's global scope. */
export interface WorkerScope {
  postMessage(message: FromWorker): void;
  addEventListener(kind: "message", listener: (event: { readonly data: ToWorker }) => void): void;
  close(): void;
}

/** Serves the page that started this Worker, until `close`. */
export function startWorkerRunner(scope: WorkerScope): void {
  const files = new Map<string, ByteSource>();
  const backends = makePageBackends();
  let handleMessage: (message: ToRunner) => void = () => {};
  startRunner(
    {
      send: (message) => scope.postMessage(message),
      onMessage: (handle) => void (handleMessage = handle),
      onDisconnect: () => {}, // a page ends its Workers with it
      exit() {
        scope.postMessage({ kind: "ended" });
        scope.close();
      },
    },
    {
      loop: systemLoop(),
      open(path) {
        const file = files.get(path);
        if (file) return { ...file, close() {} }; // it may be opened again
        throw new AppError("not_found", `${path}: no such file`);
      },
      chooseBackend: (name, offload) => chooseAmong(backends, name, offload),
      decodeImage: async (bytes, gone) => (await import("./decode-image.ts")).decodeImage(bytes, gone),
    },
  );
  let last = Promise.resolve();
  scope.addEventListener("message", ({ data }) => {
    last = last
      .then(() => take(data))
      .catch((error: unknown) => {
        scope.postMessage({ kind: "failed", code: codeOf(error), message: messageOf(error) });
      });
  });

  async function take(message: ToWorker): Promise<void> {
    switch (message.kind) {
      case "mount": {
        const { path, file } = message;
        files.get(path)?.close();
        files.set(path, await openPageFile(file));
        return scope.postMessage({ kind: "mounted", path });
      }
      case "store": {
        const { name } = message.download;
        await storeModel(message.download, {
          onProgress: (bytes) => scope.postMessage({ kind: "storing", name, ...bytes }),
          onBusy: () => scope.postMessage({ kind: "busy", name }),
        });
        return scope.postMessage({ kind: "stored", name });
      }
      case "list":
        return scope.postMessage({ kind: "models", names: await storedModels() });
      case "remove":
        await removeModel(message.name);
        return scope.postMessage({ kind: "removed", name: message.name });
      default:
        handleMessage(message);
    }
  }
}
