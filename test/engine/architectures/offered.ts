/** Models made in code with random adapters that rows may choose. */
import { join } from "node:path";
import { loadProgram, offerAdapters } from "../../../src/engine/architectures/index.ts";
import { openGguf } from "../../../src/engine/formats/files/gguf.ts";
import { writeGguf, type WriteModel } from "../../../src/engine/formats/files/write.ts";
import type { Gguf } from "../../../src/engine/formats/gguf/gguf.ts";
import type { Program } from "../../../src/engine/program/backend.ts";
import { quants } from "../../../src/engine/formats/quant/index.ts";
import { makeAdapter, quantizedTo, type AdapterOptions } from "./adapters.ts";
import { makeModel } from "./models.ts";

/** Two adapters share every stack, the third has another rank, the fourth changes some layers and the output. */
export const OFFERED: readonly AdapterOptions[] = [
  { rank: 4, alpha: 8, seed: 21, targets: /blk\.\d+\.(attn|ffn_(gate|up|down)\.)/ },
  { rank: 4, alpha: 2, seed: 22, targets: /blk\.\d+\.(attn|ffn_(gate|up|down)\.)/ },
  { rank: 6, alpha: 3, seed: 23, targets: /blk\.\d+\.attn/ },
  { rank: 4, alpha: 4, seed: 24, targets: /blk\.1\.attn|^output/ },
];

export interface Offered {
  /** The model with all adapters on offer. */
  readonly program: Program;
  readonly gguf: Gguf;
  readonly adapters: readonly Gguf[];
  close(): void;
}

interface Source {
  readonly folder: string;
  readonly name: string;
  /** The types of the adapters' tensors, alternating; default: float32. */
  readonly types?: readonly ("f32" | "f16" | "q8_0")[];
}

export async function makeOffered({ folder, name, types = ["f32"] }: Source): Promise<Offered> {
  const write = async (model: WriteModel): Promise<Gguf> => {
    const path = join(folder, `${crypto.randomUUID()}.gguf`);
    await writeGguf(path, model);
    return openGguf(path);
  };
  const model = makeModel(name);
  const gguf = await write(model);
  const adapters = await Promise.all(
    OFFERED.map((options, i) => {
      const adapter = makeAdapter(model, options);
      const type = types[i % types.length]!;
      const rank = options.rank % quants[type].blockLen === 0 || quants[type].blockLen === 1;
      const tensors = adapter.tensors.map((tensor) =>
        rank || tensor.name.endsWith("lora_a") ? quantizedTo(type, tensor) : tensor,
      );
      return write({ ...adapter, tensors });
    }),
  );
  return {
    program: offerAdapters(loadProgram(gguf), gguf, adapters),
    gguf,
    adapters,
    close: () => [gguf, ...adapters].forEach((file) => file.close()),
  };
}
