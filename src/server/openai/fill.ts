/**
 * The body of `POST /infill` and its answers, as llama-server has them: a text is written between two others, with
 * other files of the project before them. https://github.com/ggml-org/llama.cpp/tree/master/tools/server
 */
import { t, type Static } from "elysia";
import { AppError, isObject } from "../../base/index.ts";
import type { GenerateRequest } from "../../runtime/portable.ts";
import type { AnswerEvent, DoneEvent } from "../answers/answer.ts";
import type { Frame } from "../http/sse.ts";
import { Int } from "../schema/message.ts";
import { samplingFields } from "../schema/sampling.ts";
import { timingsOf } from "./timings.ts";

/** Files beside the texts. */
const EXTRA_MAX = 256;

export const InfillBody = t.Object(
  {
    model: t.Optional(t.String()),
    input_prefix: t.Optional(t.String()),
    input_suffix: t.Optional(t.String()),
    /** Other files, the most important last. */
    input_extra: t.Optional(t.Array(t.Object({ filename: t.Optional(t.String()), text: t.Optional(t.String()) }))),
    /** The beginning of the text between, such as the line before the cursor. */
    prompt: t.Optional(t.String()),
    n_predict: t.Optional(Int),
    stream: t.Optional(t.Boolean()),
    /** Milliseconds from the first token after which the next line is not begun. */
    t_max_predict_ms: t.Optional(t.Number()),
    /** The fields of the answer that are wanted; `a/b` is field `b` of `a`. */
    response_fields: t.Optional(t.Array(t.String())),
    ...samplingFields,
  },
  { title: "InfillRequest" },
);
export type InfillBody = Static<typeof InfillBody>;

/** Throws `bad_request`. */
export function toFill(body: InfillBody): Pick<GenerateRequest, "prompt" | "suffix" | "raw" | "fill"> {
  const { input_prefix = "", input_suffix = "", input_extra = [], prompt = "" } = body;
  if (input_extra.length > EXTRA_MAX) {
    throw new AppError("bad_request", `input_extra: expected at most ${EXTRA_MAX} files, got ${input_extra.length}`);
  }
  const fill = input_extra.map(({ filename = "tmp", text = "" }) => ({ name: filename, text }));
  return { prompt: input_prefix + prompt, suffix: input_suffix, raw: false, fill };
}

type Pieces = AsyncIterable<Extract<AnswerEvent, { kind: "text" | "done" }>>;

/** The answer without thinking and calls, which no fill has; ended between two lines once its time is up. */
export async function* piecesOf(
  events: AsyncIterable<AnswerEvent>,
  { t_max_predict_ms: mostMs = Infinity }: InfillBody,
): AsyncGenerator<Extract<AnswerEvent, { kind: "text" | "done" }>, void, void> {
  let startedMs = 0;
  for await (const event of events) {
    if (event.kind !== "text" && event.kind !== "done") continue;
    yield event;
    startedMs ||= performance.now();
    const isLate = mostMs > 0 && performance.now() - startedMs > mostMs;
    if (event.kind === "text" && isLate && event.text.includes("\n")) return yield { kind: "done", reason: "length" };
  }
}

interface About {
  readonly model: string;
  readonly fields: readonly string[] | undefined;
}

export async function wholeFill(pieces: Pieces, { model, fields }: About): Promise<object> {
  let content = "";
  for await (const piece of pieces) {
    if (piece.kind === "text") content += piece.text;
    else return picked({ index: 0, content, ...lastFields(piece, content), model }, fields);
  }
  throw new AppError("runner", "the answer has no end");
}

export async function* fillFrames(pieces: Pieces, { model, fields }: About): AsyncGenerator<Frame, void, void> {
  let count = 0;
  let content = "";
  for await (const piece of pieces) {
    if (piece.kind === "done") {
      yield { data: picked({ index: 0, content: "", ...lastFields(piece, content), model }, fields) };
      continue;
    }
    content += piece.text;
    yield { data: { index: 0, content: piece.text, tokens: [], stop: false, tokens_predicted: ++count } };
  }
}

function lastFields(done: DoneEvent, content: string): object {
  const { statistics, stopSequence, truncated = false, reason } = done;
  const { promptEvalCount = 0, evalCount = 0 } = statistics ?? {};
  return {
    tokens: [],
    stop: true,
    tokens_predicted: evalCount,
    tokens_evaluated: promptEvalCount,
    tokens_cached: promptEvalCount + evalCount,
    has_new_line: content.includes("\n"),
    truncated,
    stop_type: stopSequence !== undefined ? "word" : reason === "length" ? "limit" : "eos",
    stopping_word: stopSequence ?? "",
    ...timingsOf([done]),
  };
}

/** The wanted fields under the names by which they were asked for; all if none are named. */
function picked(answer: object, fields: readonly string[] | undefined): object {
  if (!fields || fields.length === 0) return answer;
  const valueAt = (path: string): unknown =>
    path
      .split("/")
      .reduce<unknown>((at, key) => (isObject(at) && Object.hasOwn(at, key) ? at[key] : undefined), answer);
  return Object.fromEntries(fields.map((path) => [path, valueAt(path)]).filter(([, value]) => value !== undefined));
}
