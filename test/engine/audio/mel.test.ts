/** Spectrograms equal the recorded ones of the reference (`bench/real/mel.py`). */
import { join } from "node:path";
import { expect, test } from "bun:test";
import { logMel, melPowers, whisperMel } from "../../../src/engine/audio/mel.ts";
import { SAMPLE_RATE } from "../../../src/engine/audio/sound.ts";

const FRAMES = [...Array(8).keys(), 44, 45, 46, 47, 92, 93, 94, 95, 96, 97, 98, 99];

/** A second: quiet at first, then a rising tone with noise. */
function sound(): Float32Array {
  let state = 1;
  return Float32Array.from({ length: SAMPLE_RATE }, (_, i) => {
    state = (state * 16_807) % 2_147_483_647;
    const t = i / SAMPLE_RATE;
    const value = 0.3 * Math.sin(2 * Math.PI * (200 + 3000 * t) * t) + 0.02 * (state / 2 ** 30 - 1);
    return i < SAMPLE_RATE / 8 ? value * 0.001 : value;
  });
}

test("Whisper's spectrograms of 80 and 128 bins equal the reference's", async () => {
  const recorded = await Bun.file(join(import.meta.dir, "files/mel.bin")).arrayBuffer();
  let at = 0;
  for (const bins of [80, 128]) {
    const wanted = new Float32Array(recorded, at, bins * FRAMES.length);
    at += wanted.byteLength;
    const { frames, values } = logMel(sound(), whisperMel(bins));
    expect(frames).toBe(100);
    let worst = 0;
    for (let bin = 0; bin < bins; bin++)
      for (const [i, frame] of FRAMES.entries())
        worst = Math.max(worst, Math.abs(values[bin * frames + frame]! - wanted[bin * FRAMES.length + i]!));
    expect(worst).toBeLessThan(1e-4);
  }
  expect(at).toBe(recorded.byteLength);
});

test("a tone is loudest in the band of its frequency, on both mel scales", () => {
  const tone = Float32Array.from({ length: 2048 }, (_, i) => Math.sin((2 * Math.PI * 1000 * i) / SAMPLE_RATE));
  const options = { bins: 20, fft: 512, hop: 160, window: 320, range: [0, 8000], norm: "none", centre: false } as const;
  const loudest = (scale: "htk" | "slaney"): number => {
    const { frames, values } = melPowers(tone, { ...options, scale });
    expect(frames).toBe(10); // (2048 - 512) / 160 whole steps, and the first
    const column = Array.from({ length: 20 }, (_, bin) => values[bin * frames + 4]!);
    return column.indexOf(Math.max(...column));
  };
  // 8,000 Hz are 2,840 mel (HTK) or 45.2 (Slaney), 1,000 Hz 1,000 or 15: band 21 · 1000/2840 - 1, 21 · 15/45.2 - 1
  expect({ htk: loudest("htk"), slaney: loudest("slaney") }).toEqual({ htk: 6, slaney: 6 });
});
