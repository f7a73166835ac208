/** Whisper base, on our own steps, transcribes speech that Debian's espeak-ng makes. */
import { afterAll, beforeAll, expect, test } from "bun:test";
import { join } from "node:path";
import { SPOKEN, wordErrors } from "../../bench/real/spoken.ts";
import { runHearth, startHearth, type Hearth } from "../e2e/hearth.ts";
import { realModel } from "./models.ts";

const whisper = await realModel("whisperTensors");
const speaks = Bun.which("espeak-ng") !== null;
if (!speaks) console.error("espeak-ng is not here, tests of Whisper are skipped");
const spokenTest = speaks ? whisper.test : (test.skip as typeof test);
let hearth: Hearth | undefined;

beforeAll(async () => {
  if (whisper.path === "" || !speaks) return;
  hearth = await startHearth();
  const modelfile = join(hearth.home, "Modelfile");
  await Bun.write(modelfile, `FROM ${whisper.path}\n`);
  const env = { HEARTH_HOST: hearth.url };
  const { code, stderr } = await runHearth(["create", "whisper", "-f", modelfile], { home: hearth.home, env });
  if (code !== 0) throw new Error(stderr);
}, 180_000);
afterAll(() => hearth?.stop());

spokenTest(
  "five sentences, in pieces with their times, and in a language that it finds out",
  async () => {
    const said = SPOKEN.slice(0, 5).join(" ");
    const path = join(hearth!.home, "said.wav");
    expect(await Bun.spawn(["espeak-ng", "-v", "en-us", "-s", "140", "-w", path, said]).exited).toBe(0);
    const { code, stdout, stderr } = await runHearth(["run", "whisper", path], {
      home: hearth!.home,
      env: { HEARTH_HOST: hearth!.url },
    });
    expect([code, stderr]).toEqual([0, ""]);
    const { words, wrong } = wordErrors(said, stdout);
    expect(words).toBe(50);
    expect(wrong).toBeLessThanOrEqual(8);
  },
  180_000,
);
