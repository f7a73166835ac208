/**
 * Creates a model from files of this device: hashes each, uploads it if the server lacks it, and names it in a create
 * request.
 */
import { Refused, type Api } from "../base/api.ts";
import { work } from "../work/work.ts";

export type Phase = "checking" | "uploading";

/** Progress of a job, from the server or from this page. */
export interface Step {
  readonly status: string;
  /** A new phase starts a new count. */
  readonly phase?: Phase;
  readonly digest?: string;
  readonly total?: number;
  readonly completed?: number;
}

interface UploadParts {
  readonly api: Api;
  readonly name: string;
  readonly files: readonly File[];
  readonly signal: AbortSignal;
}

export async function* uploadSteps({ api, name, files, signal }: UploadParts): AsyncGenerator<Step, void, void> {
  const digests = new Map<string, string>();
  for (const file of files) yield startOf("checking", file);
  for (const file of files) {
    yield* progressOf("checking", file, async (onProgress) => {
      const task = { kind: "digest", file } as const;
      digests.set(file.name, await work<string>(task, { signal, onProgress }));
    });
  }
  for (const file of files) yield startOf("uploading", file);
  for (const file of files) {
    yield* progressOf("uploading", file, async (onProgress) => {
      const path = `/api/blobs/${digests.get(file.name)}`;
      if (!(await has(api, path, signal))) await api.upload(path, file, { signal, onProgress });
      onProgress(file.size);
    });
  }
  const body = { model: name, files: Object.fromEntries(digests) };
  yield* api.lines<Step>("/api/create", { body, signal });
}

const startOf = (phase: Phase, file: File): Step => ({
  status: "",
  phase,
  digest: file.name,
  total: file.size,
});

/** Yields the progress of a piece of work. */
async function* progressOf(
  phase: Phase,
  file: File,
  run: (onProgress: (done: number) => void) => Promise<void>,
): AsyncGenerator<Step, void, void> {
  let [done, wake, isOver] = [0, (): void => {}, false];
  const running = run((now) => {
    done = now;
    wake();
  }).finally(() => {
    isOver = true;
    wake();
  });
  running.catch(() => {}); // thrown below
  while (!isOver) {
    await new Promise<void>((resolve) => (wake = resolve));
    yield { ...startOf(phase, file), completed: done };
  }
  await running;
}

/** Asks the server before uploading, so that a missing key is requested before a large file is sent. */
async function has(api: Api, path: string, signal: AbortSignal): Promise<boolean> {
  try {
    await api.json(path, { method: "HEAD", signal });
    return true;
  } catch (error) {
    if (error instanceof Refused && error.status === 404) return false;
    throw error;
  }
}
