/** Rerankers: encoders with a head of one output, and Qwen 3 with such a head, or with its answers "yes" and "no". */
import { AppError, isObject } from "../../../base/index.ts";
import type { WriteValue } from "../../../engine/formats/index.ts";
import { u32, type Architecture, type TensorTable } from "../architecture.ts";
import type { Config } from "../config.ts";
import { bert } from "./bert.ts";
import { modernBert, roberta } from "./encoders.ts";
import { qwen3 } from "./qwen3.ts";

/** `LLAMA_POOLING_TYPE_RANK` and `_MEAN`, llama.h */
const [RANK, MEAN] = [4, 1];
const PRECISE = { precise: true } as const;
const OUTPUT = { to: "cls.output", ...PRECISE } as const;

/** Classifiers with several labels give no score. If there is no list of labels, there are two (transformers). */
function checkOneLabel(config: Config): void {
  const labels = config.find("id2label");
  const count = isObject(labels) ? Object.keys(labels).length : config.count("num_labels", { fallback: 2 });
  if (count === 1) return;
  const expected = "one label, as rerankers have";
  throw new AppError("unsupported", `${config.label}: 'id2label': expected ${expected}, got ${count}`);
}

interface Head {
  readonly tensors: TensorTable;
  readonly metadata?: (config: Config) => Record<string, WriteValue>;
}

const withHead = (base: Architecture, { tensors, metadata }: Head): Architecture => ({
  ...base,
  ranksPairs: true,
  metadata(config) {
    checkOneLabel(config);
    return { ...base.metadata(config), pooling_type: u32(RANK), ...metadata?.(config) };
  },
  tensors: (config) => ({ ...base.tensors(config), ...tensors }),
});

export const bertRanker: Architecture = {
  ...withHead(bert, { tensors: { "pooler.dense": { to: "cls", ...PRECISE }, classifier: OUTPUT } }),
  unused: /^(embeddings\.position_ids$|cls\.)/,
};

export const robertaRanker: Architecture = withHead(roberta, {
  tensors: { "classifier.dense": { to: "cls", ...PRECISE }, "classifier.out_proj": OUTPUT },
});

export const modernBertRanker: Architecture = {
  ...withHead(modernBert, {
    tensors: { "head.dense": { to: "cls", ...PRECISE }, "head.norm": { to: "cls.norm" }, classifier: OUTPUT },
    metadata(config): Record<string, WriteValue> {
      const pooling = config.text("classifier_pooling", "cls");
      if (pooling !== "cls" && pooling !== "mean") throw config.wrong("classifier_pooling", "'cls' or 'mean'");
      if (config.text("classifier_activation", "gelu") !== "gelu")
        throw config.wrong("classifier_activation", "'gelu'");
      return pooling === "mean" ? { "classifier.pooling_type": u32(MEAN) } : {};
    },
  }),
  unused: /^decoder\./,
};

/** Qwen 3 with one output in place of the vocabulary's. */
export const qwen3Ranker: Architecture = {
  ...withHead(qwen3, { tensors: { score: OUTPUT } }),
  ranksPairs: false, // query and document are in one prompt
  unused: /^lm_head\./,
};

/** Qwen3-Reranker is a text model that answers "yes" or "no", and is recognised only by its name. */
export const qwen3Answers: Architecture = {
  ...qwen3,
  metadata: (config) => ({ ...qwen3.metadata(config), pooling_type: u32(RANK) }),
  answers: ["yes", "no"],
};

export const isNamedReranker = (config: Config): boolean =>
  /qwen3(-vl)?-reranker/i.test(`${config.label} ${String(config.find("_name_or_path") ?? "")}`);
