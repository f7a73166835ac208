/**
 * The body of `POST /infill`, as llama-server has it: a text is written between two others, with
 * other files of the project before them. https://github.com/ggml-org/llama.cpp/tree/master/tools/server
 */
import { t, type Static } from "elysia";
import { AppError } from "../../base/index.ts";
import type { GenerateRequest } from "../../runtime/portable.ts";
import { nativeFields } from "./native-completion.ts";

/** Other files, which give the model context. */
const EXTRA_MAX = 256;

export const InfillBody = t.Object(
  {
    input_prefix: t.Optional(t.String()),
    input_suffix: t.Optional(t.String()),
    /** Other files, the most important last. */
    input_extra: t.Optional(t.Array(t.Object({ filename: t.Optional(t.String()), text: t.Optional(t.String()) }))),
    /** The beginning of the text between, such as the line before the cursor. */
    prompt: t.Optional(t.String()),
    ...nativeFields,
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
