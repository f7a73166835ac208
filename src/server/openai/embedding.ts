/** The body of `POST /v1/embeddings`, and its reply. */
import { t, type Static } from "elysia";
import { AppError } from "../../base/index.ts";
import type { EmbedResult } from "../../runtime/portable.ts";
import { Int } from "../schema/message.ts";

export const EmbeddingBody = t.Object(
  {
    model: t.Optional(t.String()),
    /** A text, or several. */
    input: t.Optional(t.Unknown()),
    dimensions: t.Optional(Int),
    encoding_format: t.Optional(t.String()),

    // not in the OpenAI API
    options: t.Optional(t.Record(t.String(), t.Unknown())),
    keep_alive: t.Optional(t.Unknown()),
    truncate: t.Optional(t.Boolean()),
  },
  { title: "EmbedRequest" },
);
type EmbeddingBody = Static<typeof EmbeddingBody>;

/** The body of llama-server's `POST /embedding`. */
export const NativeEmbeddingBody = t.Object(
  {
    model: t.Optional(t.String()),
    /** A text, or several. */
    content: t.Optional(t.Unknown()),
    input: t.Optional(t.Unknown()),
    embd_normalize: t.Optional(Int),
    keep_alive: t.Optional(t.Unknown()),
    truncate: t.Optional(t.Boolean()),
  },
  { title: "NativeEmbeddingRequest" },
);

/** The texts to embed. Throws `bad_request`. */
export function toInputs(input: unknown): string[] {
  if (input === undefined || (Array.isArray(input) && input.length === 0)) {
    throw new AppError("bad_request", "invalid input: expected a text, or an array of texts");
  }
  const texts: unknown[] = Array.isArray(input) ? input : [input];
  if ([texts, texts[0]].some((ids) => Array.isArray(ids) && typeof ids[0] === "number")) throw tokenIds();
  return texts.map((text, i) => {
    if (typeof text === "string") return text.toWellFormed();
    const found = Array.isArray(text) ? "an array" : text === null ? "null" : typeof text;
    throw new AppError("bad_request", `invalid input type: input[${i}]: expected a text, got ${found}`);
  });
}

/** LangChain's `OpenAIEmbeddings` sends ids of OpenAI's vocabulary unless it is configured otherwise. */
const tokenIds = (): AppError =>
  new AppError(
    "bad_request",
    "invalid input type: expected texts, got ids of tokens, which belong to another model's vocabulary " +
      "(in LangChain set check_embedding_ctx_length=False)",
  );

type Encode = (embedding: Float32Array) => string | Float32Array;

const ENCODINGS = {
  float: (embedding) => embedding,
  base64: (embedding) => littleEndian(embedding).toString("base64"),
} as const satisfies Record<string, Encode>;

/** The encoding of embeddings; numbers by default. Throws `bad_request`. */
export function toEncode({ encoding_format: format = "float" }: EmbeddingBody): Encode {
  const name = format.toLowerCase();
  if (name === "" || name === "float") return ENCODINGS.float;
  if (name === "base64") return ENCODINGS.base64;
  const shown = format.slice(0, 80);
  const message = `Invalid value for 'encoding_format' = ${shown}. Supported values: ['float', 'base64'].`;
  throw new AppError("bad_request", message);
}

function littleEndian(values: Float32Array): Buffer {
  const bytes = Buffer.alloc(values.length * Float32Array.BYTES_PER_ELEMENT);
  values.forEach((value, i) => bytes.writeFloatLE(value, i * Float32Array.BYTES_PER_ELEMENT));
  return bytes;
}

/** Counts only the texts' tokens: an embedding has no completion tokens. */
export function embeddingList(
  { embeddings, promptEvalCount }: EmbedResult,
  { model, encode }: { model: string; encode: Encode },
): object {
  return {
    object: "list",
    data: embeddings.map((embedding, index) => ({ object: "embedding", embedding: encode(embedding), index })),
    model,
    usage: { prompt_tokens: promptEvalCount, total_tokens: promptEvalCount },
  };
}
