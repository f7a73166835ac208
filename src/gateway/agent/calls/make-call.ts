/**
 * Makes one journaled call of a tool server: after its approval if it needs one, and again only if that does no harm.
 * A failure becomes the call's result, and does not end the turn.
 */
import { AppError, type Fields } from "../../../base/index.ts";
import type { McpResult } from "../../../runtime/mcp/index.ts";
import { neutralize } from "../boundary/index.ts";
import { external, operator, type TaintedText } from "../boundary/tainted-text.ts";
import { digestOf } from "./digest.ts";
import type { CallRow, Journal } from "./journal.ts";
import type { ServerTool } from "./server-tools.ts";

export interface CallParts {
  readonly journal: Journal;
  /** Undefined: the turn may not use the tool any more. */
  readonly tool: ServerTool | undefined;
  readonly now: number;
  readonly signal: AbortSignal;
  /** UTF-16 units of a result. */
  readonly charsMax: number;
}

/** The end of a call, or the reason why it has none. */
export type CallEnd =
  | { readonly kind: "result"; readonly result: TaintedText; readonly isUnknown: boolean }
  /** It waits for an approval, at most until then, in epoch milliseconds. */
  | { readonly kind: "waits"; readonly until: number };

export async function makeCall(call: CallRow, parts: CallParts): Promise<CallEnd> {
  const { journal, tool } = parts;
  if (call.result !== null) return { kind: "result", result: call.result, isUnknown: call.state === "unknown" };
  if (call.state === "begun" && !call.isRepeatable) return end(call, parts, { result: UNKNOWN, isUnknown: true });
  const { code, expiresAt, verdict } = call;
  if (code !== null && verdict === null && parts.now < (expiresAt ?? 0)) return { kind: "waits", until: expiresAt! };
  const refusal = refusalOf(call, tool);
  if (refusal !== undefined || !tool) return end(call, parts, { result: operator(`error: ${refusal}`) });
  await journal.begin(call);
  const attempt = await tryCall(call, tool, parts);
  const last = attempt === "unknown" && call.isRepeatable ? await tryCall(call, tool, parts) : attempt;
  return end(call, parts, last === "unknown" ? { result: UNKNOWN, isUnknown: true } : { result: last });
}

/** Makes a call that may be repeated, without a journal: makes it again if the first outcome is unknown. */
export async function makeRepeatable(args: Fields, tool: ServerTool, parts: Trying): Promise<TaintedText> {
  const call = { id: "", arguments: args }; // the tool has no argument for a key
  const attempt = await tryCall(call, tool, parts);
  const last = attempt === "unknown" ? await tryCall(call, tool, parts) : attempt;
  return last === "unknown" ? operator("error: the tool did not answer") : last;
}

type Trying = Pick<CallParts, "signal" | "charsMax">;

const UNKNOWN = operator(
  "error: the call was interrupted: it may have had its effect or not, and is not repeated. Say so in your answer.",
);

/** The reason not to make the call; undefined: it may be made. */
function refusalOf({ tool: id, arguments: args, ...call }: CallRow, tool: ServerTool | undefined): string | undefined {
  if (!tool || tool.id !== id) return "this tool is no longer available; the call was not made";
  if (call.code === null) return tool.isHarmless ? undefined : "the tool needs an approval by now; it was not called";
  if (call.verdict === null) return "the call was not approved in time; it was not made";
  if (call.verdict === "no") return "an operator refused the call; it was not made. Do not try it again";
  if (call.approvedDigest === digestOf(id, args)) return undefined;
  return "the approval is for another call; it was not made";
}

async function end(
  call: CallRow,
  { journal }: CallParts,
  { result, isUnknown = false }: { readonly result: TaintedText; readonly isUnknown?: boolean },
): Promise<CallEnd> {
  await journal.end(call, result, isUnknown ? "unknown" : "ended");
  return { kind: "result", result, isUnknown };
}

/** Throws `cancelled` if the turn was stopped: the call stays begun in the journal. */
async function tryCall(
  call: Pick<CallRow, "id" | "arguments">,
  tool: ServerTool,
  { signal, charsMax }: Trying,
): Promise<TaintedText | "unknown"> {
  try {
    return resultOf(await tool.call(call.arguments, { key: call.id, signal }), charsMax);
  } catch (error) {
    if (signal.aborted) throw new AppError("cancelled", "the turn was cancelled");
    if (!(error instanceof AppError)) throw error;
    if (error.code === "upstream" && !error.isUntried) return "unknown";
    return operator(`error: the call was not made: ${neutralize(error.message).slice(0, charsMax)}`);
  }
}

function resultOf({ text, isError }: McpResult, charsMax: number): TaintedText {
  const cut = text.length > charsMax ? `${text.slice(0, charsMax)}… (cut)` : text;
  // no text of a result is ours, and U+0000 cannot be stored
  const shown = cut === "" ? operator("(no output)") : external(neutralize(cut.replaceAll("\0", "\ufffd")));
  return isError ? [...operator("error: "), ...shown] : shown;
}

/** A note for the turn's own text: its calls whose effect is unknown. */
export const noteOfUnknownEffects = (tools: readonly string[]): string =>
  `Note: a call of ${[...new Set(tools)].join(" and ")} was interrupted. ` +
  "It may have had its effect or not, and was not repeated.";
