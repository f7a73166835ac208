/** Image encoders against llama.cpp's: pixels, rows, sequences, positions and logits. */
import { describe, expect } from "bun:test";
import { loadProgram } from "../../../src/engine/architectures/index.ts";
import { chooseBackend } from "../../../src/engine/backends/index.ts";
import { inputOf, layOut, type PromptSegment } from "../../../src/engine/batching/prompt.ts";
import { openGguf } from "../../../src/engine/formats/files/gguf.ts";
import type { Gguf } from "../../../src/engine/formats/gguf/gguf.ts";
import { repairGguf } from "../../../src/engine/formats/gguf/repair/index.ts";
import { promptOf } from "../../../src/cli/diagnostics/image-diagnostics.ts";
import { loadTokenizer } from "../../../src/engine/text/tokenizer/load.ts";
import { openImageEncoder } from "../../../src/engine/vision/index.ts";
import { nmse } from "../backends/compare.ts";
import { goldenTest } from "../../golden.ts";
import { lastLogits, loadText, SLOW, TOLERANCES, withRows } from "./golden-text.ts";
import { goldenPath, readFloats, readPicture, readProjector, type GoldenChunk, type GoldenImage } from "./golden.ts";

describe.each(Object.entries(TOLERANCES))("%s", (name, tolerance) => {
  goldenTest("pictures have the reference's rows, sequences and logits", async () => {
    const { images, text, mmproj, prompt } = readProjector(name);
    const gguf = repairGguf(openGguf(goldenPath(text)));
    const clip = openGguf(goldenPath(mmproj));
    const program = loadProgram(gguf);
    const tokenizer = loadTokenizer(gguf.metadata, gguf.path);
    const backend = await chooseBackend("auto", { layers: 0 });
    const options = { backend, text: program, threads: 1, signal: undefined };
    // The reference lacks a layer of LLaVA, except in rows called fixed.
    const encoder = await openImageEncoder(name === "mlp_nocls" ? withoutLastLayer(clip) : clip, options);
    const session = await loadText(backend, gguf, { images: undefined });
    try {
      for (const [image, expected] of Object.entries(images)) {
        if (image === SLOW) continue;
        const picture = readPicture(expected);
        const pixels = encoder.pixels(picture).map(({ values }) => values);
        expect(largestDifference(concat(pixels), readFloats(expected.pixels.file))).toBeLessThan(1e-5);
        const parts = await encoder.encode(picture);
        const rows = parts.flatMap((part) => (part.kind === "rows" ? [part.vectors] : []));
        const wanted = expected.fixed ?? expected.exact ?? expected.embd;
        expect(nmse(concat(rows), readFloats(wanted.file)), `${image}: rows`).toBeLessThan(
          expected.exact ? 1e-10 : 1e-5,
        );
        const layout = encoder.layout(picture).map((part) => (part.kind === "rows" ? part.rows : part.text));
        expect(layout).toEqual(parts.map((part) => (part.kind === "rows" ? part.rows : part.text)));
        const sequence = promptOf(prompt, parts, tokenizer);
        expect(sequence.map(summaryOf)).toEqual(expected.chunks.map(expectedSummary));
        expectPositions(sequence, expected.chunks);
        const logits = readFloats(expected.logits.file);
        expect(nmse(await lastLogits(session, sequence), logits), `${image}: logits`).toBeLessThan(tolerance.ours);
        const theirs = withRows(sequence, readFloats(expected.embd.file));
        expect(nmse(await lastLogits(session, theirs), logits), `${image}: text`).toBeLessThan(tolerance.text);
      }
    } finally {
      session.close();
      encoder.close();
      for (const file of [gguf, clip]) file.close();
    }
  });
});

function withoutLastLayer(gguf: Gguf): Gguf {
  const key = "clip.vision.block_count";
  const count = Number(gguf.metadata.get(key)) - 1;
  const kept = [...gguf.tensors].filter(([name]) => !name.startsWith(`v.blk.${count}.`));
  return { ...gguf, metadata: new Map([...gguf.metadata, [key, count]]), tensors: new Map(kept) };
}

/** One position per row or three: the reference has three for images and one for texts. */
function expectPositions(sequence: readonly PromptSegment[], chunks: GoldenImage["chunks"]): void {
  const { keys, media } = layOut(sequence);
  const { positions = Int32Array.from(keys, (_, i) => i) } = inputOf(
    { tokens: keys, media },
    { start: 0, end: keys.length },
  );
  const perRow = positions.length / keys.length;
  const expected = chunks.flatMap(({ pos, pos_sections: sections }) =>
    pos
      ? pos.map((each) => Array.from({ length: perRow }, () => each))
      : sections!.t.map((time, i) => [time, sections!.y[i]!, sections!.x[i]!]),
  );
  expect([...positions]).toEqual(expected.flat());
}

const summaryOf = (part: PromptSegment): unknown =>
  part.kind === "ids" ? [...part.ids] : { rows: part.media.rows, isTwoWay: part.media.isTwoWay };
const expectedSummary = ({ tokens, n_tokens: rows, non_causal: isTwoWay }: GoldenChunk): unknown =>
  tokens ?? { rows, isTwoWay };

function concat(arrays: readonly Float32Array[]): Float32Array {
  const out = new Float32Array(arrays.reduce((sum, { length }) => sum + length, 0));
  let at = 0;
  for (const each of arrays) {
    out.set(each, at);
    at += each.length;
  }
  return out;
}

function largestDifference(got: Float32Array, expected: Float32Array): number {
  expect(got.length).toBe(expected.length);
  return got.reduce((most, value, i) => Math.max(most, Math.abs(value - expected[i]!)), 0);
}
