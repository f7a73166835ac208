/** One answer of a random model with calls, parsed and judged. */
import type { Rng } from "../../../src/engine/text/rng.ts";
import type { LazyGrammar } from "../../../src/engine/text/sampling/lazy-grammar.ts";
import { forcedCallSchema, requiredTools } from "../../../src/runtime/inference/forced-call.ts";
import { lazyGrammar, makeCallWriter } from "../../../src/runtime/parse/call-grammar.ts";
import type { CallEvent, ToolFormat } from "../../../src/runtime/parse/format.ts";
import { toolFormats, type ToolFormatName } from "../../../src/runtime/parse/index.ts";
import { callsInJson } from "../../../src/runtime/parse/json-calls.ts";
import type { Tool } from "../../../src/runtime/requests/runtime.ts";
import { misfitOf } from "./call-tools.ts";
import { cut, parseWith } from "./cut.ts";
import { answerUnder, answerWithCall, beforeCall, makeRandomModel, type RandomModel } from "./random-calls.ts";

/** `auto`: the model opens a call, and may make others where that is parallel. */
export const CALL_MODES = ["auto", "parallel", "auto", "parallel", "required", "named"] as const;
export type CallMode = (typeof CALL_MODES)[number];

/** Tokens of an answer. */
const STEPS_MAX = 1500;

export interface Caller {
  readonly name: ToolFormatName;
  readonly format: ToolFormat;
  readonly tools: readonly Tool[];
  readonly model: RandomModel;
  readonly single: LazyGrammar;
  readonly parallel: LazyGrammar;
  dispose(): void;
}

export function makeCaller(name: ToolFormatName, tools: readonly Tool[], isByteLevel: boolean): Caller {
  const format: ToolFormat = toolFormats[name];
  const model = makeRandomModel(format.markup, isByteLevel);
  const grammarOf = (isParallel: boolean): LazyGrammar => {
    const writer = makeCallWriter(tools, isParallel);
    return lazyGrammar(writer, format.grammar(writer), { once: !isParallel })!; // there are tools
  };
  return {
    name,
    format,
    tools,
    model,
    single: grammarOf(false),
    parallel: grammarOf(true),
    dispose: () => model.compiler.dispose(),
  };
}

export type CallResult =
  | { readonly kind: "cut" }
  | { readonly kind: "fault"; readonly why: string; readonly calls: readonly CallEvent[] }
  | { readonly kind: "calls"; readonly calls: readonly CallEvent[] };

interface Run {
  readonly mode: CallMode;
  readonly seed: number;
  /** Decides where the answer is cut into pieces. */
  readonly pieces: Rng;
}

export function callIn(caller: Caller, run: Run): Promise<CallResult> {
  return run.mode === "required" || run.mode === "named" ? forced(caller, run) : opened(caller, run);
}

async function opened(caller: Caller, { mode, seed, pieces }: Run): Promise<CallResult> {
  const { name, format, tools, model } = caller;
  const lazy = mode === "auto" ? caller.single : caller.parallel;
  const { text: opening, atStart } = lazy.triggers[Math.floor(pieces.float() * lazy.triggers.length)]!;
  const before = atStart ? "" : beforeCall(name);
  const text = await answerWithCall(lazy, model, { begun: before + opening, seed, stepsMax: STEPS_MAX });
  if (text === undefined) return { kind: "cut" };
  const events = parseWith(format.makeParser(tools), cut(text, lengths(pieces)));
  const calls = events.filter((event) => event.kind === "toolCall");
  const rest = events.flatMap((event) => (event.kind === "text" ? [event.text] : [])).join("");
  if (calls.length === 0 || (mode === "auto" && calls.length > 1)) {
    return { kind: "fault", why: `${calls.length} calls in ${JSON.stringify(text)}`, calls };
  }
  if (rest.trim() !== (before.includes("Let me see.") ? "Let me see." : "")) {
    return { kind: "fault", why: `the text '${rest}' beside the calls in ${JSON.stringify(text)}`, calls };
  }
  return judged(tools, calls, text);
}

async function forced({ format, tools, model }: Caller, { mode, seed, pieces }: Run): Promise<CallResult> {
  const one = tools[Math.floor(pieces.float() * tools.length)]!.function.name;
  const toolChoice = mode === "required" ? mode : { name: one };
  const required = requiredTools({ tools, toolChoice })!; // a choice was made
  const matcher = await model.compiler.matcher(forcedCallSchema(required, format.forced));
  const text = await answerUnder(matcher, model, { seed, stepsMax: STEPS_MAX });
  if (text === undefined) return { kind: "cut" };
  const calls = callsInJson(text);
  if (calls.length !== 1) return { kind: "fault", why: `${calls.length} calls in ${JSON.stringify(text)}`, calls };
  return judged(required, calls, text);
}

function judged(tools: readonly Tool[], calls: readonly CallEvent[], text: string): CallResult {
  const why = calls.map((call) => misfitOf(tools, call)).find((each) => each !== undefined);
  return why === undefined
    ? { kind: "calls", calls }
    : { kind: "fault", why: `${why}: ${JSON.stringify(text)}`, calls };
}

/** The whole text at once, one character each, or a few. */
function* lengths(rng: Rng): Generator<number> {
  const most = [1, 4, 4, 16, Infinity][Math.floor(rng.float() * 5)]!;
  for (;;) yield most === Infinity ? most : 1 + Math.floor(rng.float() * most);
}
