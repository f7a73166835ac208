/** One JSON-RPC 2.0 call over HTTP, for bridges to platforms without an API. */
import { field, textField, type Answer, type Api } from "./api.ts";

export interface RpcCall {
  readonly path: string;
  readonly method: string;
  readonly params: Readonly<Record<string, unknown>>;
  readonly id: string;
  readonly signal: AbortSignal;
}

export const callRpc = (api: Api, { path, method, params, id, signal }: RpcCall): Promise<Answer> =>
  api.call({ path, json: { jsonrpc: "2.0", id, method, params }, signal });

/** Undefined if the answer is not an error. */
export function rpcError(body: unknown): { code: number; message: string } | undefined {
  if (typeof field(body, "error") !== "object" || field(body, "error") === null) return undefined;
  return {
    code: Number(field(body, "error", "code")),
    message: textField(body, "error", "message") ?? "no reason given",
  };
}

/** Codes of the specification for calls that were not understood and did nothing. */
const REFUSED = new Set([-32700, -32600, -32601, -32602]);

export const isRefusedCall = (code: number): boolean => REFUSED.has(code);
