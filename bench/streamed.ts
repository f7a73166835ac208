/** A server on a model file, and its answers with the time of each piece: shared by the benchmarks of serving. */
import { mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join, resolve } from "node:path";
import { startHearth, type Hearth } from "../test/e2e/hearth.ts";
import { installFile } from "./install-file.ts";

export interface Answer {
  readonly text: string;
  /** Time of the request, and of each piece. */
  readonly startMs: number;
  readonly timesMs: readonly number[];
  readonly firstMs: number;
  /** Fields of the last line. */
  readonly end: Readonly<Record<string, unknown>>;
}

/** Starts the server with a home that is deleted after `use`, which may start other servers with it. */
export async function withServer(
  file: string | undefined,
  use: (server: { start: () => Promise<Hearth>; model: string; home: string }) => Promise<void>,
  env: Record<string, string> = {},
): Promise<void> {
  const home = mkdtempSync(join(tmpdir(), "hearth-bench-"));
  const started: Hearth[] = [];
  try {
    const root = join(home, ".hearth", "models");
    const model = file ? await installFile({ root, file: resolve(file), name: "bench" }) : "hearth";
    const start = async (): Promise<Hearth> => {
      const hearth = await startHearth({ home, env: { HEARTH_CONTEXT_LENGTH: "8192", ...env } });
      started.push(hearth);
      return hearth;
    };
    await use({ start, model, home });
  } finally {
    for (const hearth of started) await hearth.stop();
    rmSync(home, { recursive: true, force: true });
  }
}

/** POSTs and reads the lines as they arrive. */
export async function ask(hearth: Hearth, path: string, body: object, signal?: AbortSignal): Promise<Answer> {
  const startMs = performance.now();
  const reply = await hearth.post(path, { stream: true, ...body }, signal);
  const timesMs: number[] = [];
  let text = "";
  let end: Record<string, unknown> = {};
  let rest = "";
  const decoder = new TextDecoder();
  for await (const chunk of reply.body ?? []) {
    const lines = (rest + decoder.decode(chunk, { stream: true })).split("\n");
    rest = lines.pop()!; // split gives at least one
    for (const line of lines) {
      const said = JSON.parse(line);
      if (said.error) throw new Error(said.error);
      if (said.done) end = said;
      else timesMs.push(performance.now());
      text += said.message?.content ?? said.response ?? "";
    }
  }
  return { text, startMs, timesMs, firstMs: (timesMs[0] ?? performance.now()) - startMs, end };
}

/** Texts that differ by their seed, of words that most vocabularies have. */
export function words(seed: number, count: number): string {
  const all = "the fox went to a small house near river and saw two red birds that sang about rain sun boats".split(
    " ",
  );
  return Array.from({ length: count }, (_, i) => all[(seed * 31 + i * (7 + seed) + ((i * i) >> 3)) % all.length]).join(
    " ",
  );
}

export const quantile = (values: readonly number[], q: number): number =>
  values.toSorted((a, b) => a - b)[Math.min(values.length - 1, Math.floor(values.length * q))] ?? NaN;
export const median = (values: readonly number[]): number => quantile(values, 0.5);
