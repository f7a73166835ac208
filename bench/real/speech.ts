/**
 * Whisper base on speech that Debian's `espeak-ng` makes: how many words are wrong, and how long it takes, on our own
 * steps and by ONNX Runtime (transformers.js).
 *
 *   bun bench/real/speech.ts [whisperTensors] [whisper] [--record]
 */
import { mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { parseArgs } from "node:util";
import { runHearth, startHearth, type Hearth } from "../../test/e2e/hearth.ts";
import { writeRecord, type Figure } from "../report/record.ts";
import { fetchReal } from "./fetch.ts";
import { SPOKEN, wordErrors } from "./spoken.ts";

const KINDS = { whisperTensors: "own steps", whisper: "ONNX" } as const;
type Kind = keyof typeof KINDS;

const { values, positionals } = parseArgs({ options: { record: { type: "boolean" } }, allowPositionals: true });
const kinds = (Object.keys(KINDS) as Kind[]).filter((kind) => positionals.length === 0 || positionals.includes(kind));
const sounds = mkdtempSync(join(tmpdir(), "hearth-speech-"));
try {
  const texts = ["This one only loads the model.", ...SPOKEN];
  for (const [i, text] of texts.entries()) {
    const command = ["espeak-ng", "-v", "en-us", "-s", "140", "-w", join(sounds, `${i}.wav`), text];
    const spoken = await Bun.spawn(command).exited;
    if (spoken !== 0) throw new Error(`espeak-ng ended with ${spoken}`);
  }
  const figures: Figure[] = [];
  for (const kind of kinds) figures.push(...(await measure(kind, texts)));
  for (const { what, measure: name, ours, unit } of figures) console.log(`${what}: ${name} ${ours[0]} ${unit}`);
  if (values.record) writeRecord("speech", { title: "Whisper base", figures });
} finally {
  rmSync(sounds, { recursive: true });
}

async function measure(kind: Kind, texts: readonly string[]): Promise<Figure[]> {
  const folder = await fetchReal(kind);
  const hearth = await startHearth();
  try {
    const modelfile = join(hearth.home, "Modelfile");
    await Bun.write(modelfile, `FROM ${folder}\n`);
    const env = { HEARTH_HOST: hearth.url };
    const { code, stderr } = await runHearth(["create", "whisper", "-f", modelfile], { home: hearth.home, env });
    if (code !== 0) throw new Error(stderr);
    let [words, wrong, seconds, took] = [0, 0, 0, 0];
    for (const [i, text] of texts.entries()) {
      const { answer, ms } = await transcribed(hearth, join(sounds, `${i}.wav`));
      if (i === 0) continue;
      const errors = wordErrors(text, answer.text);
      words += errors.words;
      wrong += errors.wrong;
      seconds += answer.duration;
      took += ms / 1000;
      console.log(`${errors.wrong}/${errors.words} ${answer.text}`);
    }
    const what = `${SPOKEN.length} sentences of espeak-ng, ${KINDS[kind]}`;
    return [
      { what, measure: "word error rate", unit: "%", ours: [round((100 * wrong) / words)] },
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
  return { answer: await response.json(), ms: performance.now() - startedMs };
}

function round(value: number): number {
  return Number(value.toPrecision(3));
}
