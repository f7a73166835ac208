/** Text to the ids of a model and back. The model is loaded for it, as for any other request. */
import { lease, modelOf, type RuntimeParts } from "./answer.ts";
import type { DetokenizeRequest, DetokenizeResult, TokenizeRequest, TokenizeResult } from "./runtime.ts";
import type { RunnerProcess } from "./runner-process.ts";

export async function runTokenize(parts: RuntimeParts, request: TokenizeRequest): Promise<TokenizeResult> {
  const { text, addSpecial, parseSpecial, wantsPieces } = request;
  return onRunner(parts, request, async (runner) => {
    const { tokens, pieces } = await runner.tokenize({ text, addSpecial, parseSpecial, wantsPieces });
    return { tokens: Array.from(tokens), ...(pieces ? { pieces } : {}) };
  });
}

export async function runDetokenize(parts: RuntimeParts, request: DetokenizeRequest): Promise<DetokenizeResult> {
  return onRunner(parts, request, async (runner) => ({ text: await runner.detokenize(request.tokens) }));
}

async function onRunner<T>(
  parts: RuntimeParts,
  request: TokenizeRequest | DetokenizeRequest,
  work: (runner: RunnerProcess) => Promise<T>,
): Promise<T & { totalNs: number; loadNs: number }> {
  const loaded = await lease(parts, await modelOf(parts, request), request);
  try {
    const result = await work(loaded.lease.runner);
    return { ...result, totalNs: Bun.nanoseconds() - loaded.startedNs, loadNs: loaded.loadNs };
  } finally {
    loaded.lease.release();
  }
}
