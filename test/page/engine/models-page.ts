/** The script of models.test.ts's page: small models on WebGPU, each in a separate Worker. Posts their answers. */
import { parseKernels } from "../../../src/base/kernel-tuning.ts";
import { startRunner, type LoadMessage, type PageWorker, type RunnerClient } from "../../../src/page/engine/index.ts";
import { SAMPLING_DEFAULTS } from "../../../src/engine/text/sampling/options.ts";
import { textOf } from "./text-of.ts";

/** Sizes that SwiftShader compiles and runs fastest. */
const QUICK = parseKernels("threads=32,columns=8");

export interface Work {
  readonly model: string;
  /** True if it gets a question about the picture at `/picture`. */
  readonly sees: boolean;
  readonly temperature: number;
}

export interface Answered {
  readonly model: string;
  readonly backend: string;
  /** Ids of each prompt and its answer. */
  readonly answers: readonly (readonly number[])[];
  readonly images: { readonly encoded: number; readonly reused: number };
}

/** Drawn, because such a model repeats one token for ever if it is the likeliest each time. */
const OPTIONS = { ...SAMPLING_DEFAULTS, seed: 7, top_k: 0, top_p: 1, min_p: 0, num_predict: 12 };
const PROMPT = "onceuponatimetherewasalittlegirlwholivednearthesea";
const QUESTIONS = ["what is this?", "which colour has it?"];

export const loadOf = ({ model, sees }: Work): LoadMessage => ({
  kind: "load",
  path: model,
  projector: sees ? `${model}-projector` : undefined,
  adapters: [],
  template: { go: undefined, prefersGo: undefined },
  backend: "webgpu",
  gpuLayers: undefined,
  gpuMemory: undefined,
  ctxLen: 256,
  slots: 1,
  chunk: 64,
  threads: 1,
  precise: false,
  cacheDir: undefined,
  gpuKernels: QUICK,
});

/** Answers to a text, or to two questions about a picture. Also asked of the server's runner. */
export async function answersOf(
  runner: RunnerClient,
  { temperature }: Work,
  picture: Uint8Array | undefined,
): Promise<number[][]> {
  const options = { ...OPTIONS, temperature };
  const { signal } = new AbortController();
  const ask = async (asked: Parameters<RunnerClient["generate"]>[0]["asked"]): Promise<number[]> =>
    (await textOf(runner.generate({ asked, options, shift: false }, signal))).tokens;
  if (!picture) return [await ask({ kind: "text", text: PROMPT, context: [] })];
  const answers: number[][] = [];
  for (const content of QUESTIONS) {
    const messages = [{ role: "user", content, images: [picture] }] as const;
    answers.push(await ask({ kind: "chat", template: 0, nowMs: 0, messages }));
  }
  return answers;
}

declare const Worker: new (url: string, options: { type: "module" }) => PageWorker;

async function run(work: Work): Promise<Answered> {
  const { model, sees } = work;
  const load = loadOf(work);
  const paths = [load.path, ...(load.projector === undefined ? [] : [load.projector])];
  const files = Object.fromEntries(paths.map((path) => [path, { kind: "url", url: `/${path}` } as const]));
  const picture = sees ? await (await fetch("/picture")).bytes() : undefined;
  const worker = new Worker("/worker-main.js", { type: "module" });
  const { signal } = new AbortController();
  const runner = await startRunner(worker, load, { files, loadTimeoutMs: 60_000, signal });
  const answers = await answersOf(runner, work, picture);
  await runner.close();
  return { model, backend: runner.info.backend, answers, images: runner.images };
}

if ("document" in globalThis) {
  const post = (said: object): Promise<unknown> => fetch("/said", { method: "POST", body: JSON.stringify(said) });
  const all = async (): Promise<void> => {
    for (const work of (await (await fetch("/work")).json()) as Work[]) await post(await run(work)); // models.test.ts's
    await post({ done: true });
  };
  void all().catch((error: Error) => post({ error: error.stack ?? error.message }));
}
