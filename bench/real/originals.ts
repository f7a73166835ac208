/**
 * Compares Hearth with the original implementations: small random models of transformers, converted from their folders,
 * and the logits of both.
 *
 *   python3 -m venv VENV && VENV/bin/pip install torch transformers sentencepiece 'pillow<12'   (some gigabytes)
 *   bun bench/real/originals.ts VENV/bin/python [--only NAME,…] [--folder FOLDER] [--record]
 *
 * Pillow 13 resizes some pictures in the other order, vertically first, which rounds other pixels.
 *
 * The bound is an NMSE of 1e-6 (1e-11 where models have the exact GELU), in float32 on both sides.
 * Models that `--folder` has already are not made again.
 * `--record` also writes what test/library/convert/originals.test.ts compares with: with `--only`, of those models.
 */
import { existsSync, mkdirSync, mkdtempSync, readdirSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { basename, join } from "node:path";
import { parseArgs } from "node:util";
import { messageOf } from "../../src/base/index.ts";
import { cpuBackend } from "../../src/engine/backends/cpu.ts";
import { simdBackend } from "../../src/engine/backends/host/simd.ts";
import { loadProgram } from "../../src/engine/architectures/index.ts";
import { openGguf } from "../../src/engine/formats/files/gguf.ts";
import { loadTokenizer } from "../../src/engine/text/tokenizer/load.ts";
import { convertModel } from "../../src/library/convert/convert.ts";
import {
  answerOf,
  boundOf,
  heardRows,
  ORIGINALS,
  readOriginals,
  ROWS,
  scoreError,
  type Original,
} from "../../test/library/convert/originals.ts";
import { seenBy, type Picture } from "../../test/library/convert/pictures.ts";
import { writeRecord, type Figure } from "../report/record.ts";

const SOUND_NMSE_MAX = 1e-9;
const SEEN_NMSE_MAX = 1e-11;
/** Recorded of an encoder: the last rows. */
const SOUND_BYTES = 512;
const BACKENDS = { cpu: cpuBackend, simd: simdBackend } as const;
const { values: flags, positionals } = parseArgs({
  options: { only: { type: "string" }, folder: { type: "string" }, record: { type: "boolean" } },
  allowPositionals: true,
});
const [python] = positionals;
if (python === undefined) throw new Error("expected the Python of an environment with torch and transformers");

const folder = flags.folder ?? mkdtempSync(join(tmpdir(), "hearth-originals-"));
/** The folders of the models to compare. */
const only = flags.only?.split(",").map((name) => name.replaceAll(" ", "-")) ?? [];
const figures: Figure[] = [];
try {
  mkdirSync(folder, { recursive: true });
  if (readModels().length === 0 || only.some((name) => !existsSync(join(folder, name, "original.f32")))) {
    const command = [python, join(import.meta.dir, "originals.py"), folder, ...(flags.only?.split(",") ?? [])];
    const child = Bun.spawn(command, { stdio: ["ignore", "inherit", "pipe"] });
    const [errors, code] = await Promise.all([child.stderr.text(), child.exited]);
    if (code !== 0) throw new Error(`${python} ended with ${code}: ${errors.slice(-800)}`);
  }
  for (const name of readModels()) if (only.length === 0 || only.includes(name)) await compare(name);
} finally {
  if (flags.folder === undefined) rmSync(folder, { recursive: true });
}
const good = figures.filter(({ ours: [error = Infinity], goal }) => error <= goal!.atMost!).length; // all have one
console.log(`${good} of ${figures.length} figures within their bounds`);
if (flags.record) {
  if (only.length === 0)
    writeRecord("originals", { title: "The original implementations: transformers, float32", figures });
  await writeOriginals();
}
process.exit(good === figures.length ? 0 : 1);

function readModels(): string[] {
  return existsSync(folder)
    ? readdirSync(folder)
        .filter((name) => existsSync(join(folder, name, "original.f32")))
        .toSorted()
    : [];
}

async function compare(name: string): Promise<void> {
  const source = join(folder, name);
  const to = join(folder, `${name}.gguf`);
  rmSync(to, { force: true });
  const files = new Map(readdirSync(source).map((file) => [file, join(source, file)]));
  try {
    await convertModel({ folder: { label: name, files }, to });
    const made = (await Bun.file(join(source, "original.json")).json()) as Made;
    checkTexts(name, to, made.texts);
    const expected = await floatsIn(join(source, "original.f32"));
    const hears = await hearsIn(source, to);
    const pictures = await picturesIn(source);
    await compareSeen(name, to, pictures);
    for (const backend of ["cpu", "simd"] as const) {
      const error = errorOf(
        await answerOf(to, { ...made, ...secondOf(made), hears, pictures }, BACKENDS[backend]),
        expected,
      );
      const goal = { of: "value", atMost: boundOf(name) } as const;
      figures.push({ what: `${name}, ${backend}`, measure: "NMSE to transformers", unit: "", ours: [error], goal });
      console.log(`${error < goal.atMost ? "  " : "! "}${name}, ${backend}: ${error.toExponential(1)}`);
    }
  } catch (error) {
    console.log(`! ${name}: ${messageOf(error)}`);
  }
}

async function floatsIn(path: string): Promise<Float32Array> {
  return new Float32Array(await Bun.file(path).arrayBuffer());
}

/** True for a model with an encoder of recordings, whose rows are compared with the original's. */
async function hearsIn(source: string, path: string): Promise<boolean> {
  const recorded = join(source, "sound.f32");
  if (!existsSync(recorded)) return false;
  const gguf = openGguf(path);
  const error = errorOf(await heardRows(gguf), await floatsIn(recorded));
  gguf.close();
  const goal = { of: "value", atMost: SOUND_NMSE_MAX } as const;
  const what = `${basename(source)}'s encoder, simd`;
  figures.push({ what, measure: "NMSE to transformers", unit: "", ours: [error], goal });
  console.log(`${error < SOUND_NMSE_MAX ? "  " : "! "}${what}: ${error.toExponential(1)}`);
  return true;
}

async function picturesIn(source: string): Promise<readonly Picture[]> {
  const file = Bun.file(join(source, "pictures.json"));
  return (await file.exists()) ? await file.json() : [];
}

/** Compares pixels and rows of pictures with the original's. */
async function compareSeen(name: string, path: string, pictures: readonly Picture[]): Promise<void> {
  if (pictures.length === 0) return;
  const gguf = openGguf(path);
  for (const [level, backend] of Object.entries(BACKENDS)) {
    const seen = await seenBy(backend, { gguf, program: loadProgram(gguf), pictures });
    const errors = seen.map(({ pixels, error }, i) => (pixels === pictures[i]!.pixels ? error : Infinity));
    const error = Math.max(...errors);
    const goal = { of: "value", atMost: SEEN_NMSE_MAX } as const;
    const what = `${name}'s encoder, ${level}`;
    figures.push({ what, measure: "NMSE to transformers", unit: "", ours: [error], goal });
    console.log(`${error < SEEN_NMSE_MAX ? "  " : "! "}${what}: ${error.toExponential(1)}`);
  }
  gguf.close();
}

/** Texts and their ids. */
interface Made {
  readonly ids: readonly number[];
  readonly texts: readonly (readonly [text: string, ids: readonly number[]])[];
  readonly second?: number | null;
  readonly read?: readonly number[];
  readonly answer?: readonly number[];
}

function secondOf({ second }: Pick<Made, "second">): Pick<Original, "second"> {
  return { second: typeof second === "number" ? second : undefined };
}

function checkTexts(name: string, path: string, texts: Made["texts"]): void {
  if (texts.length === 0) return;
  const gguf = openGguf(path);
  const tokenizer = loadTokenizer(gguf.metadata, path);
  gguf.close();
  const wrong = texts.filter(([text, ids]) => {
    const got = tokenizer.encode(text, { addSpecial: true, parseSpecial: false });
    if (String([...got]) !== String(ids))
      console.log(`! ${JSON.stringify(text)}: ${[...got].join(" ")}, expected ${ids.join(" ")}`);
    return String([...got]) !== String(ids);
  });
  const goal = { of: "value", atMost: 0 } as const;
  figures.push({ what: `${name}, ${texts.length} texts`, measure: "other ids", unit: "", ours: [wrong.length], goal });
}

async function writeOriginals(): Promise<void> {
  const originals: Record<string, Original> = only.length > 0 ? { ...(await readOriginals()) } : {};
  for (const name of readModels()) {
    if (only.length > 0 && !only.includes(name)) continue;
    const { ids, tensors, second, read, answer } = await Bun.file(join(folder, name, "original.json")).json();
    const config = await Bun.file(join(folder, name, "config.json")).json();
    const logits = await Bun.file(join(folder, name, "original.f32")).bytes();
    const recorded = typeof second === "number" ? logits : logits.subarray(-ROWS * (logits.length / ids.length));
    const last = Buffer.from(recorded).toString("base64");
    const soundFile = Bun.file(join(folder, name, "sound.f32"));
    const sound =
      (await soundFile.exists()) && Buffer.from((await soundFile.bytes()).subarray(-SOUND_BYTES)).toString("base64");
    const pictures = await picturesIn(join(folder, name));
    const more = { ...(sound && { sound }), ...(pictures.length > 0 && { pictures }), ...(read && { read, answer }) };
    originals[name] = { config, ids, tensors, last, ...secondOf({ second }), ...more };
  }
  await Bun.write(ORIGINALS, Bun.gzipSync(JSON.stringify(originals)));
}

/** NMSE; infinite if the numbers of values differ. */
function errorOf(got: Float32Array, expected: Float32Array): number {
  if (got.length !== expected.length) return Infinity;
  if (got.length === 1) return scoreError(got[0]!, expected[0]!);
  const error = got.reduce((sum, value, i) => sum + (value - expected[i]!) ** 2, 0);
  return error / expected.reduce((sum, value) => sum + value ** 2, 0);
}
