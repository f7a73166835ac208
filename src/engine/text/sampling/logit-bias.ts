/**
 * Logit biases: values that a request adds to single tokens' logits before all other steps, like `logit_bias` of the
 * OpenAI API; −100 forbids a token, 100 forces it.
 */
import { AppError, isObject, shown } from "../../../base/index.ts";

/** By token id in decimal. */
export type LogitBias = Readonly<Record<string, number>>;

const BIAS_MAX = 100;
const BIASES_MAX = 1024;

/**
 * Ignores biases that are null. Throws `bad_request`.
 * @param given an object, or text such as `413:100, 7:-20`, which Open WebUI sends as its users write it
 */
export function parseLogitBias(given: unknown): LogitBias {
  const biases = typeof given === "string" ? fieldsOf(given) : given;
  if (!isObject(biases)) throw wrong("an object", shown(given));
  const entries = Object.entries(biases).filter(([, bias]) => bias !== null);
  if (entries.length > BIASES_MAX) throw wrong(`at most ${BIASES_MAX} tokens`, `${entries.length}`);
  return Object.fromEntries(
    entries.map(([id, bias]) => {
      if (!/^\d{1,9}$/.test(id)) throw wrong("ids of tokens as keys", JSON.stringify(id));
      if (typeof bias === "number" && Math.abs(bias) <= BIAS_MAX) return [id, bias];
      throw wrong(`numbers from -${BIAS_MAX} to ${BIAS_MAX}`, `${JSON.stringify(bias)} for token ${id}`);
    }),
  );
}

function fieldsOf(text: string): Record<string, unknown> {
  const pairs = text.split(",").filter((pair) => pair.trim() !== "");
  return Object.fromEntries(
    pairs.map((pair) => {
      const [id = "", bias = ""] = pair.split(":").map((part) => part.trim());
      return [id, bias === "" || Number.isNaN(Number(bias)) ? bias : Number(bias)];
    }),
  );
}

/**
 * Makes a function that adds biases to logits (vocabSize), in place; undefined without biases. Throws `bad_request` if
 * the model does not have a token.
 */
export function makeLogitBias(biases: LogitBias, vocabSize: number): ((logits: Float32Array) => void) | undefined {
  const entries = Object.entries(biases).map(([id, bias]) => ({
    id: Number(id),
    bias,
  }));
  if (entries.length === 0) return undefined;
  const unknown = entries.find(({ id }) => id >= vocabSize);
  if (unknown) {
    throw new AppError("bad_request", `logit_bias: expected ids below ${vocabSize}, got token ${unknown.id}`);
  }
  return (logits) => {
    for (const { id, bias } of entries) logits[id]! += bias;
  };
}

const wrong = (expected: string, got: string): AppError =>
  new AppError("bad_request", `option "logit_bias": expected ${expected}, got ${got}`);
