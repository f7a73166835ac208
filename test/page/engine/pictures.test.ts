/** Image files in a Worker of a page: the server's pixels from the browser's decoders, and its refusals. */
import { join } from "node:path";
import { deflateSync } from "node:zlib";
import { expect, test } from "bun:test";
import { decodeImage } from "../../../src/engine/vision/decode.ts";
import { buildForBrowser } from "../../../src/page/engine/build.ts";
import { pictures } from "../../engine/vision/jpegs.ts";
import { chunk, png } from "../../engine/vision/vision-model.ts";
import { browserRefusal, sayingsOf } from "./chromium.ts";
import type { Decoded } from "./pictures-worker.ts";

/** Bytes without order. */
const noise = (count: number): Uint8Array => Uint8Array.from({ length: count }, (_, i) => (i * 7919 + (i >> 5)) % 256);
const base64 = (text: string): Uint8Array<ArrayBuffer> => new Uint8Array(Buffer.from(text, "base64"));

/** A PNG with another depth or colour type; chunks before its pixels. */
function rawPng(bits: number, colour: number, { perRow, more = [] }: { perRow: number; more?: Uint8Array[] }): Buffer {
  const [width, height] = [40, 6];
  const header = Buffer.alloc(13);
  header.writeUInt32BE(width, 0);
  header.writeUInt32BE(height, 4);
  header.set([bits, colour, 0, 0, 0], 8);
  const rows = noise(height * (perRow + 1));
  for (let y = 0; y < height; y++) rows[y * (perRow + 1)] = 0; // no filter
  const signature = Buffer.from("\x89PNG\r\n\x1a\n", "latin1");
  const data = chunk("IDAT", deflateSync(rows));
  return Buffer.concat([signature, chunk("IHDR", header), ...more, data, chunk("IEND", new Uint8Array(0))]);
}

const whole = png(64, 64, { samples: noise(64 * 64 * 3) });
const flipped = Buffer.from(whole);
flipped.fill(0xaa, 60, 200);
/** Files whose pixels must be the server's; a page must refuse the files that it refuses. */
const EXACT: Readonly<Record<string, Uint8Array>> = {
  "PNG of RGB": png(37, 5, { samples: noise(37 * 5 * 3) }),
  "PNG with alpha": png(37, 5, { colour: 6, samples: noise(37 * 5 * 4) }),
  "PNG with alpha, larger than a tile": png(1100, 1030, { colour: 6, samples: noise(1100 * 1030 * 4) }),
  "PNG of gray": png(37, 5, { colour: 0, samples: noise(37 * 5) }),
  "PNG of gray with alpha": png(37, 5, { colour: 4, samples: noise(37 * 5 * 2) }),
  "PNG of 16 bits": rawPng(16, 2, { perRow: 240 }),
  "PNG of one bit": rawPng(1, 0, { perRow: 5 }),
  "PNG with a palette and transparency": rawPng(8, 3, {
    perRow: 40,
    more: [chunk("PLTE", noise(768)), chunk("tRNS", noise(256))],
  }),
  "PNG with a gamma": rawPng(8, 2, { perRow: 120, more: [chunk("gAMA", Uint8Array.of(0, 1, 0x86, 0xa0))] }),
  "PNG that is cut off": whole.subarray(0, whole.length - 400),
  "PNG that is damaged": flipped,
  GIF: new Uint8Array(Buffer.from("47494638396102000100800000000000ffffff2c0000000002000100000202440a003b", "hex")),
  "WebP, lossy with alpha": base64(
    "UklGRtYAAABXRUJQVlA4WAoAAAAQAAAAFwAAEAAAQUxQSBYAAAABmYzof4BowGKI/v9ZFCMmYAJY67gfVlA4IJoAAACwBQCdASoYABEAPqlGnkmm" +
      "JCMhMAwAwBUJbACdMoR14NJ3CbAA+f/IOTr7zBu4CfzLB6LKhSAA/vhoOHC0FjAnhKp9di4sx21HDm9Ib7plQe4DWOpLSn2cNXW9NUUsOpOHFTk+" +
      "fH/zKNkprW8JcfeJU/k2/OIbNrQhSW3+SwEYwjP45fPytyXIfZGrRPP4+7H65brZJVchgAAA",
  ),
  "WebP, lossless with alpha": base64(
    "UklGRnAAAABXRUJQVlA4TGMAAAAvFwAEEAmAIAb8H3uI6H96IRZM5g/dFUT9o/8Rh0G2kWrw/sZ3/w8wCozbSFKcWy8ffxnUtm3DhmhnLBNAiDY9" +
      "DISRGHyB4lIAT2DwKYBlCJZBiAJ4ZZiwA4iw4QEhfigOAAAA",
  ),
  "JPEG that is cut off": base64(pictures[0]![2]).subarray(0, 300),
  "no image": Buffer.from("hello, world"),
  "PNG of 50 megapixels": (() => {
    const large = png(1, 1, { samples: noise(3) });
    large.writeUInt32BE(10_000, 16);
    large.writeUInt32BE(5000, 20);
    return large;
  })(),
};
/** Levels of 255 by which decoders of JPEG may differ: largest and mean, as of the server's from the reference. */
const JPEG_BOUND = { most: 3, mean: 0.5 };

const refusal = await browserRefusal();
const name = "a page decodes and refuses pictures as the server does, JPEG within its rounding";

test.skipIf(refusal !== undefined)(
  refusal === undefined ? name : `${name} (${refusal})`,
  async () => {
    const jpegs = Object.fromEntries(pictures.map(([kind, , file]) => [`JPEG: ${kind}`, base64(file)]));
    const files = { ...EXACT, ...jpegs };
    const { scripts } = await buildForBrowser(join(import.meta.dir, "pictures-worker.ts"));
    const answers = await sayingsOf<Decoded>({
      script: `
        const worker = new Worker("/${scripts.find(({ isEntry }) => isEntry)!.name}", { type: "module" });
        const say = (said) => fetch("/said", { method: "POST", body: JSON.stringify(said) });
        worker.onerror = ({ message }) => say({ error: message });
        worker.onmessage = ({ data }) => say(data);`,
      serve(request) {
        const path = decodeURIComponent(new URL(request.url).pathname.slice(1));
        if (path === "names") return Response.json(Object.keys(files));
        const script = scripts.find((each) => each.name === path);
        if (script) return new Response(script.text, { headers: { "content-type": "text/javascript" } });
        return path in files ? new Response(new Uint8Array(files[path]!)) : undefined;
      },
    });
    expect(answers.map((answer) => answer.name).toSorted()).toEqual(Object.keys(files).toSorted());
    for (const answer of answers) {
      const expected = await decodeImage(files[answer.name]!).catch((error: Error) => error);
      if (expected instanceof Error) {
        expect(answer.problem, answer.name).toStartWith(expected.message.replace(/\(.*\)$/, ""));
        continue;
      }
      expect(answer.problem, answer.name).toBeUndefined();
      expect([answer.width, answer.height]).toEqual([expected.width, expected.height]);
      const data = new Uint8Array(Buffer.from(answer.data!, "base64"));
      const apart = data.map((value, i) => Math.abs(value - expected.data[i]!));
      const most = apart.reduce((largest, each) => Math.max(largest, each), 0);
      expect(data.length, answer.name).toBe(expected.data.length);
      expect(most, answer.name).toBeLessThanOrEqual(answer.name in jpegs ? JPEG_BOUND.most : 0);
      expect(apart.reduce((sum, each) => sum + each, 0) / data.length).toBeLessThanOrEqual(JPEG_BOUND.mean);
    }
  },
  60_000,
);
