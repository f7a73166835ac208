/**
 * The runtime of a page: the server's own `chat` and `generate`, over models that run in a Worker of the page. One
 * model is in memory at a time; its files are downloaded once, and then read from the page's storage.
 */
import { abortable, AppError, messageOf } from "../../base/index.ts";
import type { EngineInfo, LoadMessage } from "../../engine/index.ts";
import {
  makeCallGrammars,
  runChat,
  runGenerate,
  type RunnerClient,
  type Runtime,
  type RuntimeParts,
} from "../../runtime/portable.ts";
import { makeName, type ModelName, type ModelRef } from "../../library/portable.ts";
import { startRunner, storeInPage, type PageWorker } from "./client.ts";
import type { PageFile } from "./files.ts";
import { storedName } from "./kept.ts";

/** A file of a model, by the digest of its bytes. */
interface ModelFile {
  readonly digest: string;
  readonly size: number;
}

interface NamedDigest extends ModelFile {
  readonly name: string;
}

/** The files of a model, as the server lists them for clients that run it. */
export interface ModelParts {
  readonly name: Pick<ModelName, "host" | "namespace" | "model" | "tag">;
  readonly displayName: string;
  readonly digest: string;
  readonly weights: ModelFile;
  readonly adapters: readonly ModelFile[];
  /** The projector file, for images, if the model has one. */
  readonly projector?: ModelFile;
  readonly config: ModelRef["config"];
  readonly parameters: ModelRef["parameters"];
  readonly messages: ModelRef["messages"];
  readonly template?: string;
  readonly system?: string;
  /** The files that define the model, if its weights file is only a description. */
  readonly files?: readonly NamedDigest[];
}

/** The states of a page before an answer begins. */
export type PageWait =
  | { readonly kind: "storing"; readonly done: number; readonly total: number }
  /** Another tab is storing it. */
  | { readonly kind: "busy" }
  | { readonly kind: "loading"; readonly fraction: number }
  /** The model could not be stored, and is read from the server each time. */
  | { readonly kind: "unkept"; readonly reason: string };

export interface PageRuntimeOptions {
  readonly startWorker: () => PageWorker;
  /** Undefined: there is no such model. */
  readonly find: (model: string) => Promise<ModelParts | undefined>;
  /** The URL of a file, for range requests. */
  readonly locate: (digest: string) => { readonly url: string; readonly headers: Readonly<Record<string, string>> };
  /** `auto`, or the name of a backend. */
  readonly backend: () => string;
  readonly threads: number;
  readonly onWait: (wait: PageWait) => void;
  /** Called when a model is loaded, and with `undefined` when it is unloaded. */
  readonly onModel: (model: { readonly name: string; readonly info: EngineInfo } | undefined) => void;
}

export interface PageRuntime extends Pick<Runtime, "chat" | "generate"> {
  /** Ends the Worker, and with it the model. */
  unload(): void;
}

const CTX_LEN = 4096;
const LOAD_TIMEOUT_MS = 180_000;

export function makePageRuntime(options: PageRuntimeOptions): PageRuntime {
  const pool = makePagePool(options);
  const callGrammars = makeCallGrammars();
  const parts: RuntimeParts = {
    pool,
    store: {
      check: async () => {}, // files are checked when they are stored
      async resolve(model) {
        const found = await options.find(model);
        return found && refOf(found);
      },
    },
    now: () => new Date(),
    callGrammars: async () => callGrammars,
  };
  return {
    chat: (request) => runChat(parts, request),
    generate: (request) => runGenerate(parts, request),
    unload: () => pool.end(),
  };
}

/** Paths are digests here. */
function refOf({ name, weights, adapters, projector, files, ...rest }: ModelParts): ModelRef {
  if (files)
    throw new AppError(
      "unsupported",
      `'${rest.displayName}' is not a GGUF file, and Hearth's engine in this page runs no other format`,
    );
  const projectors = projector ? [projector] : [];
  const sizeBytes = [weights, ...adapters, ...projectors].reduce((sum, { size }) => sum + size, 0);
  const paths = {
    model: weights.digest,
    adapters: adapters.map(({ digest }) => digest),
    projectors: projectors.map(({ digest }) => digest),
    drafts: [],
    files: [],
  };
  const known = { root: "", modifiedAt: new Date(0), layers: [], sizeBytes, weightBytes: sizeBytes };
  return { ...known, ...rest, name: makeName(name), paths };
}

/** The model in memory. */
interface Present {
  readonly key: string;
  readonly worker: PageWorker;
  readonly started: Promise<RunnerClient>;
  readonly abort: AbortController;
}

function makePagePool(options: PageRuntimeOptions): RuntimeParts["pool"] & { end(): void } {
  let present: Present | undefined;
  const end = (): void => {
    present?.abort.abort();
    present?.worker.terminate();
    present = undefined;
    options.onModel(undefined);
  };
  return {
    end,
    unload: end,
    async acquire(model, request) {
      const load: LoadMessage = {
        kind: "load",
        path: model.path,
        adapters: model.adapters,
        projector: model.projector,
        template: model.template,
        backend: options.backend(),
        gpuLayers: undefined,
        gpuMemory: undefined,
        ctxLen: Math.max(4, request.options.num_ctx ?? CTX_LEN),
        slots: 1,
        chunk: Math.max(1, request.options.num_batch ?? 256),
        threads: options.threads,
        precise: false,
        cacheDir: undefined,
      };
      const { template: _, ...of } = load;
      const key = JSON.stringify(of);
      if (present?.key !== key) {
        end();
        present = begin(options, { load, key, name: model.name });
      }
      const mine = present;
      const stop = (): void => {
        if (present === mine) end();
      };
      const runner = await abortable(mine.started, [request.signal]).catch((error: unknown) => {
        stop(); // the load failed, or its caller left
        throw error;
      });
      void runner.exited.then(stop);
      return { runner, wasSilent: () => false, ended: runner.exited.then(() => {}), release() {} };
    },
  };
}

function begin(
  options: PageRuntimeOptions,
  { load, key, name }: { load: LoadMessage; key: string; name: string },
): Present {
  const worker = options.startWorker();
  const abort = new AbortController();
  const start = async (): Promise<RunnerClient> => {
    const files: Record<string, PageFile> = {};
    const { path, adapters, projector } = load;
    for (const digest of [path, ...adapters, ...(projector === undefined ? [] : [projector])])
      files[digest] = await fileOf(options, worker, digest);
    const runner = await startRunner(worker, load, {
      files,
      loadTimeoutMs: LOAD_TIMEOUT_MS,
      signal: abort.signal,
      onProgress: (fraction) => options.onWait({ kind: "loading", fraction }),
    });
    options.onModel({ name, info: runner.info });
    return runner;
  };
  return { key, worker, abort, started: start() };
}

/** Uses the page's storage if it exists and has room; else ranges from the server. */
async function fileOf({ locate, onWait }: PageRuntimeOptions, worker: PageWorker, digest: string): Promise<PageFile> {
  const [name, place] = [storedName(digest), locate(digest)];
  try {
    await storeInPage(
      worker,
      { name, ...place },
      { onProgress: (bytes) => onWait({ kind: "storing", ...bytes }), onBusy: () => onWait({ kind: "busy" }) },
    );
    return { kind: "stored", name };
  } catch (error) {
    if (error instanceof AppError && error.code === "upstream") throw error; // the server could not be read either
    onWait({ kind: "unkept", reason: messageOf(error) });
    return { kind: "url", ...place };
  }
}
