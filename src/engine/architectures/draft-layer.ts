/**
 * The additional layer that was trained to draft (`nextn`, MTP): from a row's final hidden state, which is an input,
 * and the token chosen after it, it predicts the token after that. Its block is one of the architecture's. Semantics:
 * graph_mtp of the architectures in llama.cpp's src/models, arXiv:2412.19437.
 */
import type { Frame } from "./decoder.ts";
import type { Keys } from "./hparams.ts";
import { buffersOf, embedding, output, type Model } from "./model.ts";

/** Files with several such layers are not supported. */
export function hasDraftLayer(keys: Keys, model: Model): boolean {
  return keys.number("nextn_predict_layers", 0) === 1 && model.has(`blk.${model.nLayers}.nextn.eh_proj.weight`);
}

/** Embedding, head and final norm default to the model's. */
export const draftLayer: Frame = (model, { block }) => {
  const { dim, nLayers, vocabSize, eps } = model;
  const { x, last, logits } = buffersOf(model);
  const given = { name: "given", dim };
  const said = { name: "said", dim };
  const both = { name: "said.given", dim: 2 * dim };
  const own = (name: string): string => `blk.${nLayers}.nextn.${name}`;
  const hasOwn = (name: string): boolean => model.has(`${own(name)}.weight`);
  const shape = { inDim: dim, outDim: vocabSize };
  const table = hasOwn("embed_tokens") ? model.matrix(own("embed_tokens"), shape) : embedding(model);
  const head = hasOwn("shared_head_head") ? model.linear(own("shared_head_head"), shape) : output(model);
  const norm = hasOwn("shared_head_norm") ? own("shared_head_norm") : "output_norm";
  return [
    { op: "input", out: given },
    { op: "embed", out: said, table, scale: 1 },
    { op: "rmsNorm", out: given, x: given, w: model.vector(own("hnorm"), dim), eps },
    { op: "rmsNorm", out: said, x: said, w: model.vector(own("enorm"), dim), eps },
    { op: "join", out: both, a: said, b: given, heads: 1 },
    { op: "linear", out: x, x: both, ...model.linear(own("eh_proj"), { inDim: 2 * dim, outDim: dim }) },
    ...block(nLayers),
    { op: "takeRows", out: last, x },
    { op: "rmsNorm", out: last, x: last, w: model.vector(norm, dim), eps },
    { op: "linear", out: logits, x: last, ...head },
  ];
};
