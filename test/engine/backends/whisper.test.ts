/** Whisper in ONNX files, in a process whose environment turns off telemetry of native code. */
import { afterAll, beforeAll, expect, test } from "bun:test";
import { mkdtemp, rm } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { whisperFiles } from "../../../bench/real/whisper-graph.ts";
import { makeRng } from "../../../src/engine/text/rng.ts";
import { writeFiles } from "../../library/convert/onnx-folder.ts";

let folder = "";
beforeAll(async () => void (folder = await mkdtemp(join(tmpdir(), "hearth-whisper-"))));
afterAll(() => rm(folder, { recursive: true }));

test("a text has the same logits token by token as at once, and other logits for another window", async () => {
  const sizes = { dim: 32, heads: 2, layers: 2, ffn: 64, vocab: 40, bins: 8, positions: 24 };
  const rng = makeRng(5);
  const weight = (_: string, shape: readonly number[]): Float32Array =>
    Float32Array.from({ length: shape.reduce((a, b) => a * b) }, () => (rng.float() - 0.5) * 0.8);
  await writeFiles(folder, whisperFiles(sizes, weight, { suppress_tokens: [3], begin_suppress_tokens: [] }));
  const child = Bun.spawn([process.execPath, join(import.meta.dir, "whisper-child.ts"), folder], {
    env: { ...process.env, ORT_DISABLE_TELEMETRY: "1", TMPDIR: folder },
    stdout: "pipe",
    stderr: "inherit",
  });
  const found = JSON.parse(await child.stdout.text()) as Record<string, unknown>;
  const { pieces, again, other, ...rest } = found;
  expect(Number(pieces)).toBeLessThan(1e-4);
  expect(again).toBe(0);
  expect(Number(other)).toBeGreaterThan(1e-3);
  expect(rest).toEqual({
    model: { bins: 8, vocabSize: 40, ctxLen: 24, suppressed: [3], suppressedFirst: [] },
    silent: "the model transcribes speech: it has no embeddings and no answers",
    broken: "the model: 'config.json': 'num_mel_bins': expected a count, got undefined",
  });
});
