/** Embed: texts to unit vectors, with any model of the store. */
import { AppError, nowNs } from "../../base/index.ts";
import { normalized } from "../../engine/index.ts";
import { adaptersOf, modelOf, onRunner, weightsOf, type RuntimeParts } from "./lease.ts";
import type { EmbedRequest, EmbedResult } from "../requests/runtime.ts";

/** Values of one reply, 128 MiB of float32: 32,768 texts of 1,024 values. */
const VALUES_MAX = 2 ** 25;

export async function runEmbed(parts: RuntimeParts, request: EmbedRequest): Promise<EmbedResult> {
  const startedNs = nowNs();
  const model = await modelOf(parts, request);
  const { inputs, signal, truncate = true, options, dimensions } = request;
  if (inputs.length === 0 && request.keepAliveMs === 0) {
    parts.pool.unload(weightsOf(model));
    return { embeddings: [], totalNs: nowNs() - startedNs, loadNs: 0, promptEvalCount: 0 };
  }
  return onRunner(parts, { ...request, ref: model }, async (loaded) => {
    const { runner } = loaded.lease;
    checkSize(inputs.length, runner.info.dim);
    const ctxLen = options.num_ctx ?? model.parameters.num_ctx;
    const more = { ...(ctxLen === undefined ? {} : { ctxLen: Math.max(0, ctxLen) }), ...adaptersOf(loaded) };
    const { vectors, tokens } =
      inputs.length === 0 ? { vectors: [], tokens: 0 } : await runner.embed({ inputs, truncate, ...more }, signal);
    return {
      embeddings: vectors.map((vector) => shortened(vector, dimensions)),
      totalNs: nowNs() - startedNs,
      loadNs: loaded.loadNs,
      promptEvalCount: tokens,
    };
  });
}

function checkSize(count: number, dim: number): void {
  if (count * dim <= VALUES_MAX) return;
  const most = Math.floor(VALUES_MAX / dim);
  throw new AppError("bad_request", `input: expected at most ${most} texts in one request, got ${count}`);
}

/** The first `dimensions` values, normalized again. */
function shortened(vector: Float32Array, dimensions = 0): Float32Array {
  return dimensions > 0 && dimensions < vector.length ? normalized(vector.subarray(0, dimensions)) : vector;
}
