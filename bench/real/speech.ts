/**
 * Whisper base on speech that Debian's `espeak-ng` makes: how many words are wrong, and how long it takes, on our own
 * steps and by ONNX Runtime (transformers.js). transformers hears the same samples, in float32.
 *
 *   bun bench/real/speech.ts PYTHON [--record]      PYTHON: of an environment for transcripts.py
 */
import { mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { parseArgs } from "node:util";
import { decodeAudio } from "../../src/engine/audio/decode.ts";
import { logMel, whisperMel } from "../../src/engine/audio/mel.ts";
import { SAMPLE_RATE } from "../../src/engine/audio/sound.ts";
import { runHearth, startHearth, type Hearth } from "../../test/e2e/hearth.ts";
import { writeRecord, type Figure } from "../report/record.ts";
import { fetchReal } from "./fetch.ts";
import { SPOKEN, wordErrors } from "./spoken.ts";

const KINDS = { whisperTensors: "own steps", whisper: "ONNX" } as const;
type Kind = keyof typeof KINDS;

const { values, positionals } = parseArgs({ options: { record: { type: "boolean" } }, allowPositionals: true });
const [python] = positionals;
if (python === undefined) throw new Error("expected the Python of an environment with torch and transformers");
const sounds = mkdtempSync(join(tmpdir(), "hearth-speech-"));
try {
  const texts = ["This one only loads the model.", ...SPOKEN];
  for (const [i, text] of texts.entries()) {
    const command = ["espeak-ng", "-v", "en-us", "-s", "140", "-w", join(sounds, `${i}.wav`), text];
    const spoken = await Bun.spawn(command).exited;
    if (spoken !== 0) throw new Error(`espeak-ng ended with ${spoken}`);
  }
  const { transcripts, figure } = await compareOriginal(python);
  const figures: Figure[] = [figure];
  for (const kind of Object.keys(KINDS) as Kind[]) figures.push(...(await measure(kind, texts, transcripts)));
  for (const { what, measure: name, ours, unit } of figures) console.log(`${what}: ${name} ${ours[0]} ${unit}`);
  if (values.record) writeRecord("speech", { title: "Whisper base", figures });
} finally {
  rmSync(sounds, { recursive: true });
}

/** transformers' transcript of each recording, and how near our spectrograms are to its. */
async function compareOriginal(program: string): Promise<{ transcripts: string[]; figure: Figure }> {
  const paths = SPOKEN.map((_, i) => join(sounds, `${i + 1}.f32`));
  const ours: Float32Array[] = [];
  for (const path of paths) {
    const samples = await decodeAudio(await Bun.file(path.replace(/f32$/, "wav")).bytes());
    const padded = new Float32Array(30 * SAMPLE_RATE);
    padded.set(samples);
    ours.push(logMel(padded, whisperMel(80)).values);
    await Bun.write(path, samples);
  }
  const script = join(import.meta.dir, "transcripts.py");
  const child = Bun.spawn([program, script, await fetchReal("whisperTensors"), ...paths], { stderr: "pipe" });
  const [lines, errors, code] = await Promise.all([child.stdout.text(), child.stderr.text(), child.exited]);
  if (code !== 0) throw new Error(`transcripts.py ended with ${code}: ${errors.slice(-500)}`);
  let worst = 0;
  for (const [i, path] of paths.entries()) {
    const theirs = new Float32Array(await Bun.file(`${path}.mel`).arrayBuffer());
    if (theirs.length !== ours[i]!.length) throw new Error(`${theirs.length} features, expected ${ours[i]!.length}`);
    for (const [at, value] of theirs.entries()) worst = Math.max(worst, Math.abs(value - ours[i]![at]!));
  }
  const transcripts = lines
    .trim()
    .split("\n")
    .map((line) => JSON.parse(line) as string);
  const what = `${SPOKEN.length} sentences of espeak-ng, spectrograms`;
  const goal = { of: "value", atMost: 1e-4 } as const;
  return {
    transcripts,
    figure: { what, measure: "largest difference to transformers'", unit: "", ours: [worst], goal },
  };
}

async function measure(kind: Kind, texts: readonly string[], transcripts: readonly string[]): Promise<Figure[]> {
  const folder = await fetchReal(kind);
  const hearth = await startHearth();
  try {
    const modelfile = join(hearth.home, "Modelfile");
    await Bun.write(modelfile, `FROM ${folder}\n`);
    const env = { HEARTH_HOST: hearth.url };
    const { code, stderr } = await runHearth(["create", "whisper", "-f", modelfile], { home: hearth.home, env });
    if (code !== 0) throw new Error(stderr);
    let [words, wrong, theirs, equal, seconds, took] = [0, 0, 0, 0, 0, 0];
    for (const [i, text] of texts.entries()) {
      const { answer, ms } = await transcribed(hearth, join(sounds, `${i}.wav`));
      if (i === 0) continue;
      const errors = wordErrors(text, answer.text);
      words += errors.words;
      wrong += errors.wrong;
      theirs += wordErrors(text, transcripts[i - 1]!).wrong;
      equal += Number(answer.text === transcripts[i - 1]);
      seconds += answer.duration;
      took += ms / 1000;
      console.log(`${errors.wrong}/${errors.words} ${answer.text}`);
    }
    const what = `${SPOKEN.length} sentences of espeak-ng, ${KINDS[kind]}`;
    const peer = { name: "transformers", rounds: [round((100 * theirs) / words)] };
    return [
      {
        what,
        measure: "word error rate",
        unit: "%",
        ours: [round((100 * wrong) / words)],
        peer,
        goal: { of: "ratio", atMost: 1 },
      },
      { what, measure: "transcripts equal to transformers'", unit: "", ours: [equal] },
      { what, measure: "real-time factor", unit: "s per s", ours: [round(took / seconds)] },
    ];
  } finally {
    await hearth.stop();
  }
}

async function transcribed(
  { url }: Hearth,
  path: string,
): Promise<{ answer: { text: string; duration: number }; ms: number }> {
  const form = new FormData();
  form.append("model", "whisper");
  form.append("language", "en");
  form.append("response_format", "verbose_json");
  form.append("file", Bun.file(path), "a.wav");
  const startedMs = performance.now();
  const response = await fetch(`${url}/v1/audio/transcriptions`, { method: "POST", body: form });
  if (!response.ok) throw new Error(await response.text());
  return { answer: (await response.json()) as { text: string; duration: number }, ms: performance.now() - startedMs };
}

function round(value: number): number {
  return Number(value.toPrecision(3));
}
