/** GIF: decoding an encoder's output, odd files as stb_image reads them, and no file blocks the decoder. */
import { expect, test } from "bun:test";
import { makeRng, type Rng } from "../../../src/engine/text/rng.ts";
import { decodeImage } from "../../../src/engine/vision/decode.ts";
import { decodeGif } from "../../../src/engine/vision/gif.ts";

type Bytes = readonly number[];

interface Parts {
  readonly screen: readonly [width: number, height: number];
  readonly background?: number;
  readonly colours?: Bytes | undefined;
  /** Blocks before the picture. */
  readonly before?: Bytes;
  readonly frame: readonly [left: number, top: number, width: number, height: number];
  readonly isInterlaced?: boolean;
  readonly own?: Bytes;
  readonly bits: number;
  readonly codes: Bytes;
  readonly end?: Bytes;
}

const short = (value: number): Bytes => [value & 255, value >> 8];
const countOf = (colours: Bytes | undefined): number => (colours ? 0x80 | (Math.log2(colours.length / 3) - 1) : 0);

function gif({
  screen,
  background = 0,
  colours,
  before = [],
  frame,
  isInterlaced,
  own,
  bits,
  codes,
  end,
}: Parts): Uint8Array {
  const blocks: number[] = [];
  for (let i = 0; i < codes.length; i += 255) {
    const block = codes.slice(i, i + 255);
    blocks.push(block.length, ...block);
  }
  const header = [...Buffer.from("GIF89a"), ...screen.flatMap(short), countOf(colours), background, 0];
  const flags = countOf(own) | (isInterlaced ? 0x40 : 0);
  const picture = [0x2c, ...frame.flatMap(short), flags, ...(own ?? []), bits, ...blocks, 0];
  return Uint8Array.from([...header, ...(colours ?? []), ...before, ...picture, ...(end ?? [0x3b])]);
}

/** Codes of different sizes as bytes. */
function packer() {
  const bytes: number[] = [];
  let [held, count] = [0, 0];
  return {
    put(code: number, size: number): void {
      held |= code << count;
      for (count += size; count >= 8; count -= 8, held >>>= 8) bytes.push(held & 255);
    },
    end: (): number[] => (count > 0 ? [...bytes, held & 255] : bytes),
  };
}

function packed(codes: Bytes, size: number): number[] {
  const { put, end } = packer();
  for (const code of codes) put(code, size);
  return end();
}

/** @param clears true if a full table is cleared, false if it stays */
function compress(indexes: Uint8Array, bits: number, { clears }: { clears: boolean }): number[] {
  const { put, end } = packer();
  const clear = 1 << bits;
  let [known, size, next] = [new Map<string, number>(), bits + 1, clear + 2];
  put(clear, size);
  let [text, code] = ["", -1];
  for (const index of indexes) {
    const longer = known.get(`${text},${index}`);
    if (code < 0) [text, code] = [`${index}`, index];
    else if (longer !== undefined) [text, code] = [`${text},${index}`, longer];
    else {
      put(code, size);
      if (next < 4096) {
        known.set(`${text},${index}`, next);
        if (next++ === 1 << size) size++;
      } else if (clears) {
        put(clear, size);
        [known, size, next] = [new Map(), bits + 1, clear + 2];
      }
      [text, code] = [`${index}`, index];
    }
  }
  put(code, size);
  if (next === 1 << size && size < 12) size++;
  put(clear + 1, size);
  return end();
}

const within = (rng: Rng, count: number): number => Math.floor(rng.float() * count);

test("any number of colours decodes to the compressed pixels, interlaced or not", () => {
  const rng = makeRng(7);
  for (let round = 0; round < 60; round++) {
    const bits = 1 + within(rng, 8);
    const [width, height] = round % 10 === 0 ? [300, 200] : [1 + within(rng, 20), 1 + within(rng, 12)];
    const colours = Array.from({ length: 3 << bits }, () => within(rng, 256));
    const indexes = Uint8Array.from({ length: width * height }, () => within(rng, rng.float() < 0.5 ? 2 : 1 << bits));
    const isInterlaced = round % 3 === 0;
    const lines = Array.from({ length: height }, (_, y) => y);
    const rank = (y: number): number => (y % 8 === 0 ? 0 : y % 8 === 4 ? 1 : y % 4 === 2 ? 2 : 3);
    const order = isInterlaced ? lines.toSorted((a, b) => rank(a) - rank(b)) : lines;
    const stored = Uint8Array.from(order.flatMap((y) => [...indexes.subarray(y * width, (y + 1) * width)]));
    const codes = compress(stored, bits, { clears: round % 2 === 0 });
    const bytes = gif({ screen: [width, height], colours, frame: [0, 0, width, height], isInterlaced, bits, codes });
    const expected = Uint8Array.from([...indexes].flatMap((index) => colours.slice(3 * index, 3 * index + 3)));
    const { data } = decodeGif(bytes, { width, height });
    expect(Buffer.compare(data, expected), `round ${round}: ${width}×${height}, ${bits} bits`).toBe(0);
  }
});

const [A, B, C, D] = [
  [10, 20, 30],
  [200, 0, 1],
  [0, 200, 2],
  [250, 251, 252],
] as const;
const none = [0, 0, 0] as const;
/** Two by two pixels, A, B, C and D. */
const plain: Parts = {
  screen: [2, 2],
  colours: [...A, ...B, ...C, ...D],
  frame: [0, 0, 2, 2],
  bits: 2,
  codes: compress(Uint8Array.of(0, 1, 2, 3), 2, { clears: true }),
};
const [, red, green, blue] = [0, ...D];
const last = [blue, green, red] as const; // the reference's background

test.each<[string, Partial<Parts>, (readonly number[])[]]>([
  ["a zero behind the picture", { end: [0, 0x3b] }, [A, B, C, D]],
  ["nothing behind the picture", { end: [] }, [A, B, C, D]],
  ["a text before the picture", { before: [0x21, 0x01, 2, 1, 1, 3, 1, 2, 3, 0] }, [A, B, C, D]],
  ["a local colour table", { own: [...D, ...C, ...B, ...A] }, [D, C, B, A]],
  ["a transparent entry", { background: 3, before: [0x21, 0xf9, 4, 1, 0, 0, 1, 0] }, [A, none, C, D]],
  ["a smaller frame", { frame: [1, 0, 1, 2] }, [none, A, none, B]],
  ["a smaller frame and a background", { frame: [1, 0, 1, 2], background: 3 }, [last, A, last, B]],
  ["an unknown background", { frame: [1, 0, 1, 2], background: 9 }, [none, A, none, B]],
  ["an unknown entry", { colours: [...A, ...B] }, [A, B, none, none]],
  ["no codes", { codes: [], background: 3 }, [last, last, last, last]],
  ["too few codes", { codes: compress(Uint8Array.of(1, 2), 2, { clears: true }) }, [B, C, none, none]],
  ["too many codes", { frame: [0, 1, 2, 1] }, [none, none, A, B]],
])("%s", (_, parts, expected) => {
  const { data } = decodeGif(gif({ ...plain, ...parts }), { width: 2, height: 2 });
  expect([...data]).toEqual(expected.flat());
});

test.each<[string, Partial<Parts>, string]>([
  ["a frame beyond the screen", { frame: [1, 1, 2, 2] }, "a first frame of 2×2 at 1, 1"],
  ["no colours", { colours: undefined }, "no colours"],
  ["no picture", { before: [0x3b] }, "no picture in it"],
  ["codes of too many bits", { bits: 12 }, "indexes of 12 bits"],
  ["a code before the first entry", { codes: packed([4, 6], 3) }, "an undefined code"],
  ["a code two after the last entry", { codes: packed([4, 0, 7], 3) }, "an undefined code"],
])("%s is refused", (_, parts, message) => {
  const whole = { ...plain, ...parts } as Parts;
  expect(() => decodeGif(gif(whole), { width: 2, height: 2 })).toThrow(message);
});

test("a code that refers to itself is refused", async () => {
  const hostile = gif({ ...plain, screen: [4, 4], frame: [0, 0, 4, 4], codes: packed([0, 7, 7], 3) });
  await expect(decodeImage(hostile)).rejects.toThrow("an undefined code");
});

test("a truncated or changed file is an error or a picture of its size", () => {
  const size = { width: 9, height: 7 };
  const rng = makeRng(3);
  const codes = compress(
    Uint8Array.from({ length: 63 }, () => within(rng, 4)),
    2,
    { clears: true },
  );
  const before = [0x21, 0xf9, 4, 1, 0, 0, 1, 0];
  const whole = gif({ ...plain, screen: [9, 7], frame: [0, 0, 9, 7], before, codes, isInterlaced: true });
  const data = whole.length - 4; // without the end of the codes, the end of the blocks and the end of the file
  for (let length = 10; length < data; length++)
    expect(() => decodeGif(whole.subarray(0, length), size), `${length} bytes`).toThrow("cut off");
  for (let at = 10; at < whole.length; at++) {
    for (const flip of [0x01, 0x55, 0x80, 0xff]) {
      const changed = whole.slice();
      changed[at]! ^= flip;
      try {
        expect(decodeGif(changed, size).data.length).toBe(9 * 7 * 3);
      } catch (error) {
        expect(error).toHaveProperty("code", "bad_request");
      }
    }
  }
});
