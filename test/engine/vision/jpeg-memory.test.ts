/** Memory for decoding a JPEG, by its pixels: a small file may have very many. */
import { expect, test } from "bun:test";

const [WIDTH, HEIGHT] = [4000, 3000];

/** Gray in three components: every code is a zero bit, no difference and the end of a block. */
function flat(width: number, height: number): Uint8Array {
  const segment = (marker: number, ...data: number[]): number[] => {
    return [0xff, marker, (data.length + 2) >> 8, (data.length + 2) & 255, ...data];
  };
  const counts = [1, ...Array.from({ length: 15 }, () => 0)];
  const size = [height >> 8, height & 255, width >> 8, width & 255];
  const head = [0xff, 0xd8, ...segment(0xdb, 0, ...Array.from({ length: 64 }, () => 1))];
  head.push(...segment(0xc0, 8, ...size, 3, 1, 0x11, 0, 2, 0x11, 0, 3, 0x11, 0));
  head.push(...segment(0xc4, 0x00, ...counts, 0), ...segment(0xc4, 0x10, ...counts, 0));
  head.push(...segment(0xda, 3, 1, 0, 2, 0, 3, 0, 0, 63, 0));
  const bits = 3 * 2 * Math.ceil(width / 8) * Math.ceil(height / 8);
  return Uint8Array.of(...head, ...new Uint8Array(Math.ceil(bits / 8)), 0xff, 0xd9);
}

test("a large JPEG takes a few bytes for each pixel", async () => {
  const script = `
    import { decodeImage } from "${import.meta.dir}/../../../src/engine/vision/decode.ts";
    const bytes = new Uint8Array(await Bun.stdin.arrayBuffer());
    const before = process.resourceUsage().maxRSS;
    const { data } = await decodeImage(bytes);
    console.log(JSON.stringify({ values: data.length, kib: process.resourceUsage().maxRSS - before }));
  `;
  const child = Bun.spawn([process.execPath, "-e", script], { stdin: flat(WIDTH, HEIGHT), stdout: "pipe" });
  const { values, kib } = (await child.stdout.json()) as { values: number; kib: number };
  expect(values).toBe(WIDTH * HEIGHT * 3);
  expect((kib * 1024) / (WIDTH * HEIGHT)).toBeLessThan(14); // coefficients alone are 6
}, 60_000);
