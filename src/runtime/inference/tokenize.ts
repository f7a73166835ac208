/** Tokenize and detokenize. The model is loaded for it, as for any other request. */
import { nowNs } from "../../base/index.ts";
import { onRunner, type RuntimeParts } from "./lease.ts";
import type { DetokenizeRequest, DetokenizeResult, TokenizeRequest, TokenizeResult } from "../requests/runtime.ts";
import type { RunnerClient } from "../processes/runner-client.ts";

export async function runTokenize(parts: RuntimeParts, request: TokenizeRequest): Promise<TokenizeResult> {
  const { text, addSpecial, parseSpecial, wantsPieces } = request;
  return timed(parts, request, async (runner) => {
    const { tokens, pieces } = await runner.tokenize({ text, addSpecial, parseSpecial, wantsPieces });
    return { tokens: Array.from(tokens), ...(pieces ? { pieces } : {}) };
  });
}

export async function runDetokenize(parts: RuntimeParts, request: DetokenizeRequest): Promise<DetokenizeResult> {
  return timed(parts, request, async (runner) => ({ text: await runner.detokenize(request.tokens) }));
}

function timed<T>(
  parts: RuntimeParts,
  request: TokenizeRequest | DetokenizeRequest,
  work: (runner: RunnerClient) => Promise<T>,
): Promise<T & { totalNs: number; loadNs: number }> {
  return onRunner(parts, request, async ({ lease, startedNs, loadNs }) => {
    const result = await work(lease.runner);
    return { ...result, totalNs: nowNs() - startedNs, loadNs };
  });
}
