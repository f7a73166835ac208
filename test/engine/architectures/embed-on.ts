/** Embeds texts with a file on a backend, like the engine, without a runner. */
import { systemLoop } from "../../../src/engine/batching/event-loop.ts";
import { loadEngine } from "../../../src/engine/batching/load.ts";
import { mapFile } from "../../../src/engine/formats/files/map.ts";
import type { EmbedEvent } from "../../../src/engine/batching/embedder.ts";
import type { Backend } from "../../../src/engine/program/backend.ts";
import { encodeInput } from "../../../src/engine/runner/embed.ts";

export interface EmbedOptions {
  readonly backend: Backend;
  readonly precise: boolean;
  /** Prompt tokens of one run of a decoder. */
  readonly chunk?: number;
}

/** A vector for each text. Rejects if one fails. */
export async function embedOn(path: string, texts: readonly string[], options: EmbedOptions): Promise<Float32Array[]> {
  const { promise, resolve, reject } = Promise.withResolvers<Float32Array[]>();
  const vectors: Float32Array[] = [];
  let missing = texts.length;
  const onEmbed = (event: EmbedEvent): void => {
    if (event.kind === "embedFailed") return reject(new Error(event.message));
    const dim = event.vectors.length / event.indexes.length;
    for (const [i, index] of event.indexes.entries()) vectors[index] = event.vectors.slice(i * dim, (i + 1) * dim);
    missing -= event.indexes.length;
    if (missing === 0) resolve(vectors);
  };
  const { backend, ...rest } = options;
  const plain: Backend = {
    ...backend, // it may be in another process, and accepts only cloneable options
    load: (program, { ctxLen, slots, precise, threads, cacheDir }) =>
      backend.load(program, { ctxLen, slots, precise, threads, cacheDir }),
  };
  const load = {
    ctxLen: 512,
    slots: 2,
    chunk: 512,
    threads: 1,
    cacheDir: undefined,
    emit() {},
    onEmbed,
    loop: systemLoop(),
    open: mapFile,
  };
  const { engine, tokenizer, info } = await loadEngine(path, { ...load, ...rest, backend: plain });
  const limits = { limit: info.ctxLen, truncate: true };
  try {
    engine.embed({ id: 1, texts: texts.map((text, index) => encodeInput(tokenizer, text, { ...limits, index })) });
    return await promise;
  } finally {
    await engine.close();
  }
}

export function cosine(a: ArrayLike<number>, b: ArrayLike<number>): number {
  let [dot, left, right] = [0, 0, 0];
  for (let i = 0; i < a.length; i++) {
    dot += a[i]! * b[i]!;
    left += a[i]! ** 2;
    right += b[i]! ** 2;
  }
  return a.length === b.length ? dot / Math.sqrt(left * right) : NaN;
}
