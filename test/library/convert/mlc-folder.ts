/** A folder in the MLC project's layout. Its library and weights are made up. */
import type { FolderFiles } from "./onnx-folder.ts";

const SHARDS = ["params_shard_0.bin", "params_shard_1.bin"];
/** The smallest valid module. */
const MODULE = Uint8Array.of(0, 0x61, 0x73, 0x6d, 1, 0, 0, 0);

export const mlcFolder = (): FolderFiles => ({
  "mlc-chat-config.json": {
    model_type: "llama",
    quantization: "q4f32_1",
    context_window_size: 4096,
    model_config: { hidden_size: 64, vocab_size: 128 },
    tokenizer_files: ["tokenizer.json"],
    conv_template: { name: "llama-3" },
  },
  "ndarray-cache.json": {
    metadata: { ParamSize: 2, ParamBytes: 96, BitsPerParam: 4 },
    records: SHARDS.map((dataPath, i) => ({ dataPath, format: "raw-shard", nbytes: 32 + 32 * i, records: [] })),
  },
  "tokenizer.json": { version: "1.0" },
  "made-up-q4f32_1-webgpu.wasm": MODULE,
  ...Object.fromEntries(SHARDS.map((name, i) => [name, new Uint8Array(32 + 32 * i).fill(i + 1)])),
});
