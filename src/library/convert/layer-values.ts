/** Numbers that a folder stores as a tensor with one value per layer, and a GGUF as a list in its metadata. */
import { AppError } from "../../base/index.ts";
import { f32, type WriteValue } from "../../engine/formats/index.ts";
import type { Architecture } from "./architecture.ts";
import { bareName } from "./plan.ts";
import type { SafeTensor } from "./safetensors.ts";
import { tensorData } from "./tensor-data.ts";

interface Options {
  readonly architecture: Architecture;
  readonly nLayers: number;
  readonly label: string;
}

/** Throws `bad_file` if a layer lacks a value, or has several. */
export async function layerValues(
  tensors: readonly SafeTensor[],
  { architecture: { layerValues = {} }, nLayers, label }: Options,
): Promise<Record<string, WriteValue>> {
  const byName = new Map(tensors.map((tensor) => [bareName(tensor.name), tensor]));
  const found: Record<string, WriteValue> = {};
  for (const [name, key] of Object.entries(layerValues)) {
    const values = new Float32Array(nLayers);
    for (let layer = 0; layer < nLayers; layer++) {
      const own = name.replace("*", String(layer));
      const tensor = byName.get(own);
      const count = tensor?.shape.reduce((product, size) => product * size, 1);
      if (!tensor || count !== 1) {
        const got = tensor ? `(${tensor.shape.join(", ")})` : "none";
        throw new AppError("bad_file", `${label}: tensor '${own}': expected one value, got ${got}`);
      }
      for await (const bytes of tensorData({ tensor, pairedHeads: 0 }, f32, label)) {
        values[layer] = new DataView(bytes.buffer, bytes.byteOffset).getFloat32(0, true);
      }
    }
    found[key] = values;
  }
  return found;
}
