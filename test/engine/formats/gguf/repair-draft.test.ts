/** The operations of a repair on a header, on files made here. */
import { describe, expect, test } from "bun:test";
import { readFileSync } from "node:fs";
import { openGguf } from "../../../../src/engine/formats/files/gguf.ts";
import { EditableHeader } from "../../../../src/engine/formats/gguf/repair/editable-header.ts";
import { repairGguf } from "../../../../src/engine/formats/gguf/repair/index.ts";
import { writeGguf, type WriteModel, type WriteValue } from "../../../../src/engine/formats/files/write.ts";
import { quants } from "../../../../src/engine/formats/quant/index.ts";
import { byteCharacters } from "../../../../src/engine/text/tokenizer/byte-alphabet.ts";
import { loadTokenizer } from "../../../../src/engine/text/tokenizer/load.ts";
import { golden, goldenTest } from "../../../golden.ts";
import { failure, withFolder } from "./fixture.ts";

/** (rows, columns) counting up, so that every value reveals its origin. */
function counting(columns: number, rows: number): Uint8Array {
  return new Uint8Array(Float32Array.from({ length: rows * columns }, (_, i) => i).buffer);
}

const model = (metadata: Record<string, WriteValue>): WriteModel => ({
  metadata: { "general.architecture": "old", "old.width": { u32: 4 }, ...metadata },
  tensors: [
    { name: "blk.0.attn_qkv.weight", shape: [4, 6], quant: quants.f32, data: counting(4, 6) },
    { name: "blk.0.attn_qkv.bias", shape: [6], quant: quants.f32, data: counting(6, 1) },
    { name: "v.patch.weight", shape: [4], quant: quants.f32, data: counting(4, 1) },
    { name: "packed.weight", shape: [32, 2], quant: quants.q8_0, data: new Uint8Array(68) },
  ],
});

async function withDraft(run: (draft: EditableHeader) => void): Promise<void> {
  await withFolder(async (path) => {
    await writeGguf(path("m.gguf"), model({}));
    const file = openGguf(path("m.gguf"));
    run(new EditableHeader(file));
    file.close();
  });
}

describe("a draft", () => {
  test("copies the keys of the old architecture under the new one", () =>
    withDraft((draft) => {
      draft.arch = "new";
      expect(draft.metadata.get("general.architecture")).toBe("new");
      expect(draft.number("width")).toBe(4);
    }));

  test("splits a matrix by rows and a vector by values", () =>
    withDraft((draft) => {
      draft.split("blk.0.attn_qkv.weight", { "q.weight": 3, "k.weight": 1, "v.weight": 2 });
      draft.split("blk.0.attn_qkv.bias", { "q.bias": 4, "k.bias": 2 });
      const { info, from } = draft.parts.get("k.weight")!;
      expect([info.name, info.shape, info.byteLength, from.start]).toEqual(["k.weight", [4, 1], 16, 48]);
      expect(draft.parts.get("k.bias")!.from).toEqual({ name: "blk.0.attn_qkv.bias", start: 16 });
      expect(draft.hasTensor("blk.0.attn_qkv.weight")).toBe(false);
    }));

  test("refuses a split that does not add up", () =>
    withDraft((draft) => {
      expect(failure(() => draft.split("blk.0.attn_qkv.weight", { "q.weight": 5 }))).toMatch(
        /^bad_file: .*'blk\.0\.attn_qkv\.weight': expected 5 rows, got \(4, 6\)$/,
      );
      draft.split("packed.weight", { "a.weight": 1, "b.weight": 1 });
      expect(draft.parts.get("b.weight")!.from.start).toBe(34);
    }));

  test("refuses a new name that another tensor has, and an unknown tensor", () =>
    withDraft((draft) => {
      expect(failure(() => draft.rename(/^v\.patch/, "packed"))).toMatch(
        /expected no tensor 'packed\.weight' beside it/,
      );
      expect(failure(() => draft.shape("nothing"))).toMatch(/expected a tensor 'nothing', got none/);
    }));
});

test("a repaired file reads each tensor's bytes from the parts of the original", () =>
  withFolder(async (path) => {
    const fused = (name: string, columns: number, rows: number) => ({
      name,
      shape: rows > 1 ? [columns, rows] : [columns],
      quant: quants.f32,
      data: counting(columns, rows),
    });
    await writeGguf(path("m.gguf"), {
      metadata: {
        "general.architecture": "gptoss",
        "gptoss.embedding_length": { u32: 4 },
        "gptoss.attention.head_count": { u32: 2 },
        "gptoss.attention.head_count_kv": { u32: 1 },
        "gptoss.attention.key_length": { u32: 2 },
      },
      tensors: [
        fused("blk.0.attn_qkv.weight", 4, 8),
        fused("blk.0.attn_sinks", 2, 1),
        { ...fused("blk.0.ffn_gate_exps.weight", 4, 6), shape: [4, 3, 2] },
      ],
    });
    const file = repairGguf(openGguf(path("m.gguf")));
    const floats = (name: string): number[] => [...new Float32Array(file.read(name).slice().buffer)];
    expect(floats("blk.0.attn_k.weight")).toEqual([16, 17, 18, 19, 20, 21, 22, 23]);
    expect(floats("blk.0.attn_sinks.weight")).toEqual([0, 1]);
    expect(file.metadata.get("gpt-oss.expert_feed_forward_length")).toBe(3);
    file.close();
  }));

test("a file of a known family without the tensors that its repair needs is a bad file", () =>
  withFolder(async (path) => {
    await writeGguf(path("m.gguf"), { metadata: { "general.architecture": "gptoss" }, tensors: [] });
    const file = openGguf(path("m.gguf"));
    expect(failure(() => repairGguf(file))).toMatch(/^bad_file: .*blk\.0\.ffn_gate_exps\.weight/);
    file.close();
  }));

goldenTest("Llama 3 files without a pre-tokenizer, or with a false one, encode as llama.cpp does", async () => {
  const { llama3, texts } = JSON.parse(readFileSync(golden("twins/index.json"), "utf8")) as {
    texts: string[];
    llama3: { merges: string[]; last: string[]; files: Record<string, string | number>[]; ids: number[][] };
  };
  const pieces = new Set(byteCharacters());
  for (const merge of llama3.merges) pieces.add(merge.replace(" ", ""));
  for (let i = pieces.size; i < 128_000; i++) pieces.add(`~${i.toString(36)}`);
  const tokens = [...pieces, ...llama3.last];
  await withFolder(async (path) => {
    for (const { name, ...keys } of llama3.files) {
      const ids = Object.entries(keys).map(([key, value]) => [key, typeof value === "number" ? { u32: value } : value]);
      await writeGguf(path("m.gguf"), {
        metadata: {
          "general.architecture": "llama",
          "tokenizer.ggml.model": "gpt2",
          "tokenizer.ggml.bos_token_id": { u32: 128_000 },
          "tokenizer.ggml.tokens": tokens,
          "tokenizer.ggml.token_type": Int32Array.from(tokens, (_, id) => (id < 128_000 ? 1 : 3)),
          "tokenizer.ggml.merges": llama3.merges,
          ...(Object.fromEntries(ids) as Record<string, WriteValue>),
        },
        tensors: [],
      });
      const file = repairGguf(openGguf(path("m.gguf")));
      const tokenizer = loadTokenizer(file.metadata, "m.gguf");
      for (const [i, text] of texts.entries()) {
        const got = [...tokenizer.encode(text, { addSpecial: false, parseSpecial: true })];
        expect([name, text, got]).toEqual([name, text, llama3.ids[i]!]);
      }
      expect(tokenizer.eos).toBe(128_009);
      file.close();
    }
  });
});

test("head counts for a million layers are repaired", () =>
  withFolder(async (path) => {
    const heads = new Int32Array(1_000_000).fill(2);
    const metadata = { "general.architecture": "qwen35", "qwen35.image_token_id": { u32: 1 } };
    await writeGguf(path("m.gguf"), {
      metadata: { ...metadata, "qwen35.attention.head_count_kv": heads },
      tensors: [{ name: "token_embd.weight", shape: [1, 1], quant: quants.f32, data: new Uint8Array(4) }],
    });
    const file = repairGguf(openGguf(path("m.gguf")));
    expect(file.metadata.get("qwen35.attention.head_count_kv")).toBe(2);
    file.close();
  }));
