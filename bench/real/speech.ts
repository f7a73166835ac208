/**
 * Whisper base on speech that Debian's `espeak-ng` makes: how many words are wrong, and how long it takes.
 *
 *   bun bench/real/speech.ts [--record]
 */
import { mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { runHearth, startHearth } from "../../test/e2e/hearth.ts";
import { writeRecord, type Figure } from "../report/record.ts";
import { fetchReal } from "./fetch.ts";
import { SPOKEN, wordErrors } from "./spoken.ts";

const folder = await fetchReal("whisper");
const hearth = await startHearth();
const sounds = mkdtempSync(join(tmpdir(), "hearth-speech-"));
try {
  const modelfile = join(hearth.home, "Modelfile");
  await Bun.write(modelfile, `FROM ${folder}\n`);
  const env = { HEARTH_HOST: hearth.url };
  const { code, stderr } = await runHearth(["create", "whisper", "-f", modelfile], { home: hearth.home, env });
  if (code !== 0) throw new Error(stderr);
  let [words, wrong, seconds, took] = [0, 0, 0, 0];
  for (const [i, text] of ["This one only loads the model.", ...SPOKEN].entries()) {
    const path = join(sounds, `${i}.wav`);
    const spoken = await Bun.spawn(["espeak-ng", "-v", "en-us", "-s", "140", "-w", path, text]).exited;
    if (spoken !== 0) throw new Error(`espeak-ng ended with ${spoken}`);
    const form = new FormData();
    form.append("model", "whisper");
    form.append("language", "en");
    form.append("response_format", "verbose_json");
    form.append("file", Bun.file(path), "a.wav");
    const startedMs = performance.now();
    const response = await fetch(`${hearth.url}/v1/audio/transcriptions`, { method: "POST", body: form });
    const answer = (await response.json()) as { text: string; duration: number };
    if (i === 0) continue;
    const errors = wordErrors(text, answer.text);
    words += errors.words;
    wrong += errors.wrong;
    seconds += answer.duration;
    took += (performance.now() - startedMs) / 1000;
    console.log(`${errors.wrong}/${errors.words} ${answer.text}`);
  }
  const what = `${SPOKEN.length} sentences of espeak-ng`;
  const figures: Figure[] = [
    { what, measure: "word error rate", unit: "%", ours: [round((100 * wrong) / words)] },
    { what, measure: "real-time factor", unit: "s per s", ours: [round(took / seconds)] },
  ];
  for (const { measure, ours, unit } of figures) console.log(`${what}: ${measure} ${ours[0]} ${unit}`);
  if (process.argv.includes("--record")) writeRecord("speech", { title: "Whisper base, ONNX", figures });
} finally {
  await hearth.stop();
  rmSync(sounds, { recursive: true });
}

function round(value: number): number {
  return Number(value.toPrecision(3));
}
