/** Vocabularies in `tiktoken.model`. */
import { afterAll, beforeAll, describe, expect, test } from "bun:test";
import { mkdtemp, rm } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import type { AppError } from "../../../src/base/errors.ts";
import { bytesOfCharacters } from "../../../src/engine/text/tokenizer/byte-alphabet.ts";
import type { Architecture } from "../../../src/library/convert/architecture.ts";
import { deepseek3 } from "../../../src/library/convert/archs/deepseek.ts";
import { llama } from "../../../src/library/convert/archs/llama.ts";
import { convertTokenizer } from "../../../src/library/convert/tokenizer.ts";
import { bpeMetadata, makeProse, trainMerges, TYPE } from "../../engine/text/tokenizer/fixtures.ts";
import { writeFolder } from "./hugging-face.ts";
import { piecesOf } from "./tokenizer-files.ts";

let root = "";
beforeAll(async () => void (root = await mkdtemp(join(tmpdir(), "hearth-tiktoken-"))));
afterAll(() => rm(root, { recursive: true }));

const MERGES = trainMerges(makeProse(4000), 150);

interface Sources {
  readonly rows: number;
  readonly config?: Record<string, unknown>;
  readonly architecture: Architecture;
}

async function convert(files: Record<string, object | string>, { config = {}, ...sources }: Sources) {
  const folder = await writeFolder(join(root, crypto.randomUUID()), files);
  return convertTokenizer({ folder: { ...folder, label: "folder" }, config, ...sources });
}

describe("tiktoken.model:", () => {
  const vocabulary = bpeMetadata(MERGES, [], { "tokenizer.ggml.pre": "kimi-k2" });
  const own = piecesOf(vocabulary);
  const bytesOf = bytesOfCharacters();
  const lines = own.map((piece, id) => {
    const bytes = Uint8Array.from(piece, (character) => bytesOf.get(character)!);
    return `${bytes.toBase64()} ${id}\n`;
  });
  const decoder = { [own.length]: { content: "[BOS]", special: true }, [own.length + 1]: { content: "[EOS]" } };
  const config = { bos_token: "[BOS]", eos_token: "[EOS]", added_tokens_decoder: decoder };
  const files = { "tiktoken.model": lines.join(""), "tokenizer_config.json": config };
  const rows = own.length + 300;

  test("its ranks give the merges of its training, and ids after them are control tokens", async () => {
    const end = own.length + 2;
    const sources = { rows, config: { eos_token_id: end }, architecture: deepseek3 };
    const { metadata, leftOut } = await convert(files, sources);
    expect(leftOut).toEqual([]);
    expect(metadata).toMatchObject({
      "tokenizer.ggml.model": "gpt2",
      "tokenizer.ggml.pre": "kimi-k2",
      "tokenizer.ggml.merges": MERGES,
      "tokenizer.ggml.bos_token_id": { u32: own.length },
      "tokenizer.ggml.eos_token_id": { u32: own.length + 1 },
      "tokenizer.ggml.eot_token_id": { u32: end },
    });
    const pieces = metadata["tokenizer.ggml.tokens"] as string[];
    const types = [...(metadata["tokenizer.ggml.token_type"] as Int32Array)];
    expect(pieces.slice(0, own.length)).toEqual(own);
    expect(pieces.slice(own.length, end + 1)).toEqual(["[BOS]", "[EOS]", `<|reserved_token_${end}|>`]);
    expect(types.slice(own.length, own.length + 256)).toEqual(Array(256).fill(TYPE.control));
    expect([pieces.at(-1), types.at(-1)]).toEqual([`[PAD${rows - 1}]`, TYPE.unused]);
  });

  test("is refused with another architecture or damage", async () => {
    const refused = async (text: string, architecture: Architecture): Promise<string> => {
      const failing = convert({ ...files, "tiktoken.model": text }, { rows, architecture });
      return failing.then(String, (error: AppError) => error.message);
    };
    expect(await refused(files["tiktoken.model"], llama)).toContain("'tiktoken.model' is not supported");
    for (const line of ["!!", "YQ==", "YQ== 1", "YQ== -1", `${"A".repeat(4000)} 0`, "YQ== 0 1"])
      expect(await refused(`${line}\n`, deepseek3)).toContain("'tiktoken.model': line 1: expected a token");
  });
});
