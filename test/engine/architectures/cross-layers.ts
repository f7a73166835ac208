/** Models with layers of cross attention as a program reads them that does not know such layers. */
import type { WriteModel } from "../../../src/engine/formats/files/write.ts";

/** A model of `mllama` as `llama`: without images, layers of cross attention have no effect. */
export function withoutCrossLayers({ metadata, tensors }: WriteModel): WriteModel {
  const crosses = new Set(Array.from(metadata["mllama.attention.cross_attention_layers"] as Int32Array)); // models.ts
  const count = (metadata["mllama.block_count"] as { u32: number }).u32; // as above
  const kept = Array.from({ length: count }, (_, layer) => layer).filter((layer) => !crosses.has(layer));
  const entries = Object.entries(metadata).map(([key, value]) => [key.replace(/^mllama\./, "llama."), value] as const);
  return {
    metadata: {
      ...Object.fromEntries(entries),
      "general.architecture": "llama",
      "llama.block_count": { u32: kept.length },
    },
    tensors: tensors.flatMap((tensor) => {
      const layer = /^blk\.(\d+)\./.exec(tensor.name)?.[1];
      if (layer === undefined) return [tensor];
      const to = kept.indexOf(Number(layer));
      return to < 0 ? [] : [{ ...tensor, name: tensor.name.replace(/^blk\.\d+/, `blk.${to}`) }];
    }),
  };
}
