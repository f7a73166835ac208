/** The script of chat.test.ts's page: uses the API for pages like any page would. Posts the results. */
import {
  listStored,
  removeStored,
  startRunner,
  storeInPage,
  type LoadMessage,
  type PageWorker,
} from "../../../src/page/engine/index.ts";
import { SAMPLING_DEFAULTS } from "../../../src/engine/text/sampling/options.ts";
import { textOf } from "./text-of.ts";

export const NAME = "model.gguf";
export const COUNT = 24;
const MESSAGES = [{ role: "user", content: "Tell me a story." }] as const;

export interface ChatSaid {
  readonly progress: readonly { readonly done: number; readonly total: number }[];
  readonly stored: readonly string[];
  readonly text: string;
  readonly tokens: readonly number[];
  /** Text events before an answer was stopped, and the answer after that. */
  readonly stoppedAfter: number;
  readonly again: string;
  readonly closed: string;
  readonly failure: string;
  readonly left: readonly string[];
}

const load: LoadMessage = {
  kind: "load",
  path: NAME,
  adapters: [],
  template: { go: undefined, prefersGo: undefined },
  backend: "cpu",
  gpuLayers: undefined,
  gpuMemory: undefined,
  ctxLen: 256,
  slots: 1,
  chunk: 64,
  threads: 1,
  precise: false,
  cacheDir: undefined,
};

/** A request that chat.test.ts sends to the server's runner too. */
export const request = {
  asked: { kind: "chat", template: 0, nowMs: 0, messages: MESSAGES },
  options: { ...SAMPLING_DEFAULTS, temperature: 0, num_predict: COUNT },
  shift: false,
} as const;

declare const Worker: new (url: string, options: { type: "module" }) => PageWorker;

async function chat(): Promise<ChatSaid> {
  const start = (): PageWorker => new Worker("/worker-main.js", { type: "module" });
  const { signal } = new AbortController();
  const worker = start();
  const progress: { done: number; total: number }[] = [];
  const onProgress = ({ done, total }: { done: number; total: number }): void => void progress.push({ done, total });
  await storeInPage(worker, { name: NAME, url: "/model" }, { onProgress });
  const stored = await listStored(worker);
  const files = { [NAME]: { kind: "stored", name: NAME } } as const;
  const runner = await startRunner(worker, load, { files, loadTimeoutMs: 60_000, signal });
  const first = await textOf(runner.generate(request, signal));
  let stoppedAfter = 0;
  for await (const event of runner.generate(request, signal)) {
    if (event.kind === "text" && ++stoppedAfter === 3) break;
  }
  const again = await textOf(runner.generate(request, signal));
  await runner.close();
  const closed = runner.alive ? "alive" : (await runner.exited).message;
  const failure = await startRunner(start(), { ...load, path: "other" }, { files, loadTimeoutMs: 60_000, signal }).then(
    () => "none",
    (error: Error) => error.message,
  );
  const last = start();
  await removeStored(last, NAME);
  const left = await listStored(last);
  return { progress, stored, ...first, stoppedAfter, again: again.text, closed, failure, left };
}

if ("document" in globalThis) {
  const post = (said: object): Promise<unknown> => fetch("/said", { method: "POST", body: JSON.stringify(said) });
  void chat()
    .then(post)
    .then(() => post({ done: true }))
    .catch((error: Error) => post({ error: error.stack ?? error.message }));
}
