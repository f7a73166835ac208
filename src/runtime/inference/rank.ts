/** Rank: scores documents for a query with a reranking model. */
import { AppError, nowNs } from "../../base/index.ts";
import { adaptersOf, modelOf, onRunner, type RuntimeParts } from "./lease.ts";
import type { RankRequest, RankResult } from "../requests/runtime.ts";

export async function runRank(parts: RuntimeParts, request: RankRequest): Promise<RankResult> {
  const startedNs = nowNs();
  const model = await modelOf(parts, request);
  const { query, documents, signal, truncate = true, options } = request;
  return onRunner(parts, { ...request, ref: model }, async (loaded) => {
    const { runner } = loaded.lease;
    const { ranks } = runner.info;
    if (!ranks) throw new AppError("bad_request", `${JSON.stringify(request.model)} does not support rerank`);
    const ctxLen = options.num_ctx ?? model.parameters.num_ctx;
    const limit = ctxLen === undefined ? {} : { ctxLen: Math.max(0, ctxLen) };
    const asked = { inputs: documents, query, truncate, ...limit, ...adaptersOf(loaded) };
    const { vectors, tokens } = await runner.embed(asked, signal);
    const scores = vectors.map(([score = 0]) => score);
    return {
      scores,
      relevances: ranks === "logit" ? scores.map(sigmoid) : scores,
      totalNs: nowNs() - startedNs,
      loadNs: loaded.loadNs,
      promptEvalCount: tokens,
    };
  });
}

const sigmoid = (x: number): number => 1 / (1 + Math.exp(-x));
