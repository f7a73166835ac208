/** GGUF files built in memory, whole or broken at a chosen place. */
import { mkdtemp, rm } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { alignUp } from "../../../../src/engine/formats/bytes.ts";
import { AppError } from "../../../../src/base/errors.ts";
import { encodeHeader, type WriteModel } from "../../../../src/engine/formats/files/write.ts";
import { quants } from "../../../../src/engine/formats/quant/index.ts";

export interface MemoryModel extends WriteModel {
  readonly tensors: readonly (WriteModel["tensors"][number] & { readonly data: Uint8Array })[];
}

/** The bytes of a whole file. */
export function encodeGguf(model: MemoryModel): Buffer {
  const { header, alignment } = encodeHeader(model);
  const parts = [header];
  for (const { data } of model.tensors) parts.push(data, new Uint8Array(alignUp(data.length, alignment) - data.length));
  return Buffer.concat(parts);
}

/** A small model: two tensors and one key of each kind. */
export const smallModel: MemoryModel = {
  metadata: {
    "general.architecture": "llama",
    "llama.block_count": { u32: 2 },
    "llama.rope.freq_base": { f32: 10_000 },
    "tokenizer.ggml.add_bos_token": true,
    "tokenizer.ggml.tokens": ["<s>", "▁a", "é"],
    "tokenizer.ggml.token_type": Int32Array.of(3, 1, 1),
  },
  tensors: [
    { name: "token_embd.weight", shape: [64, 3], quant: quants.q8_0, data: new Uint8Array(6 * 34).fill(1) },
    { name: "output_norm.weight", shape: [64], quant: quants.f32, data: new Uint8Array(64 * 4).fill(2) },
  ],
};

/** Writes a 32- or 64-bit number at the `nth` place (from 0) right after `marker`, in a copy. */
export function patch(bytes: Uint8Array, place: { after: string | number; skip?: number; u32?: number; u64?: bigint }) {
  const copy = Buffer.from(bytes);
  const start =
    typeof place.after === "number" ? place.after : copy.indexOf(place.after) + Buffer.byteLength(place.after);
  const at = start + (place.skip ?? 0);
  if (place.u32 !== undefined) copy.writeUInt32LE(place.u32, at);
  if (place.u64 !== undefined) copy.writeBigUInt64LE(place.u64, at);
  return copy;
}

/** The message of the AppError that `run` throws, with its code in front. */
export function failure(run: () => unknown): string {
  try {
    run();
  } catch (error) {
    if (error instanceof AppError) return `${error.code}: ${error.message}`;
    throw error;
  }
  throw new Error("expected an AppError, got a value");
}

/** Runs a test body with a separate folder, removed afterwards. */
export async function withFolder(run: (path: (name: string) => string) => Promise<void>): Promise<void> {
  const folder = await mkdtemp(join(tmpdir(), "hearth-gguf-"));
  try {
    await run((name) => join(folder, name));
  } finally {
    await rm(folder, { recursive: true });
  }
}
