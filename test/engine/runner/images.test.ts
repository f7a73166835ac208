/** Images of prompts: reading, counting and encoding them, how often, and abandoned ones. */
import { expect, test } from "bun:test";
import { AppError } from "../../../src/base/errors.ts";
import { makeImages, type Sense } from "../../../src/engine/runner/images.ts";
import { readImageHeader, type ImageEncoder, type RgbImage } from "../../../src/engine/vision/index.ts";

const never = new AbortController().signal;
const MIB = 2 ** 20;

/** A GIF of this width, complete up to its size. */
function file(width: number): Uint8Array {
  return Uint8Array.from([...Buffer.from("GIF89a"), width, 0, 1, 0]);
}

interface Eyes {
  readonly encoder: Pick<ImageEncoder, "layout" | "encode" | "close">;
  readonly decode: (bytes: Uint8Array) => Promise<RgbImage>;
}

/** The sense of a model that takes images only. */
function vision({ encoder, decode }: Eyes): { senseOf: () => Sense; close: () => void } {
  const sense: Sense = {
    name: "image",
    layout: async (bytes) => encoder.layout(readImageHeader(bytes)),
    encode: async (bytes, signal) => encoder.encode(await decode(bytes), signal),
  };
  return { senseOf: () => sense, close: () => encoder.close() };
}

/** Images of a width of 9 are damaged. Each encoding waits for `go`. */
function makeWorld({ vectorBytes = 16, memoryBytes = 0 } = {}) {
  const log: string[] = [];
  const waiting: (() => void)[] = [];
  const eyes: Eyes = {
    encoder: {
      layout: ({ width }) => [
        { kind: "marker", text: "<" },
        { kind: "rows", rows: width, positions: width },
        { kind: "rows", rows: 1, positions: 1 },
      ],
      async encode({ width }, signal) {
        log.push(`encode ${width}`);
        await new Promise<void>((resolve) => waiting.push(resolve));
        signal?.throwIfAborted();
        log.push(`encoded ${width}`);
        const rows = (count: number) => ({
          rows: count,
          vectors: new Float32Array(vectorBytes / 8),
          isTwoWay: false,
          ...(memoryBytes > 0 && { memory: new Float32Array(memoryBytes / 8) }),
        });
        return [
          { kind: "marker", text: "<" },
          { kind: "rows", ...rows(width) },
          { kind: "rows", ...rows(1) },
        ];
      },
      close: () => void log.push("close"),
    },
    async decode(bytes) {
      const width = bytes[6]!;
      if (width === 9) throw new AppError("bad_request", "image: GIF of 9×1: damaged or cut off (nothing left)");
      log.push(`decode ${width}`);
      return { width, height: 1, data: new Uint8Array(3 * width) };
    },
  };
  const images = makeImages({ ...vision(eyes), onImage: (how) => void log.push(how) });
  const go = async (): Promise<void> => {
    while (waiting.length === 0) await Bun.sleep(0);
    waiting.shift()!();
  };
  return { images, log, go };
}

test("equal files are decoded and encoded once", async () => {
  const { images, log, go } = makeWorld();
  const [first, again] = [file(3), file(3)];
  await images.read([first]);
  const [marker, rows] = images.layout(first);
  expect([marker, rows, log]).toEqual([{ kind: "marker", text: "<" }, { kind: "rows", rows: 3 }, []]);
  const encoding = images.encode([first], never);
  await go();
  const [media] = await encoding;
  expect(log.splice(0)).toEqual(["encoded", "decode 3", "encode 3", "encoded 3"]);
  expect(media!.map((run) => run.rows)).toEqual([3, 1]);
  expect(new Set(media!.map(({ hash }) => hash)).size).toBe(2);
  await images.read([again]);
  const [same] = await images.encode([again], never);
  expect([same === media, log]).toEqual([true, ["reused"]]);
});

test("two simultaneous requests share one encoding", async () => {
  const { images, log, go } = makeWorld();
  const [one, two] = [file(3), file(3)];
  await images.read([one, two]);
  const both = [images.encode([one], never), images.encode([two], never)];
  await go();
  const [first, second] = await Promise.all(both);
  expect(first![0]).toBe(second![0]!);
  expect(log).toEqual(["encoded", "reused", "decode 3", "encode 3", "encoded 3"]);
});

test("an encoding stops when its last waiting request is cancelled", async () => {
  const { images, log, go } = makeWorld();
  const [one, two, other] = [file(3), file(3), file(4)];
  await images.read([one, two, other]);
  const [first, second] = [new AbortController(), new AbortController()];
  const shared = [images.encode([one], first.signal), images.encode([two], second.signal)];
  const next = images.encode([other], never);
  first.abort();
  await go();
  await shared[1];
  expect(log).toContain("encoded 3"); // one caller was still waiting
  await go();
  expect((await next)[0]?.[0]?.rows).toBe(4);

  const abort = new AbortController();
  const [gone, later] = [file(5), file(6)];
  await images.read([gone, later]);
  const lost = images.encode([gone], abort.signal).catch(String);
  const kept = images.encode([later], never);
  while (!log.includes("encode 5")) await Bun.sleep(0);
  abort.abort();
  await go();
  expect(await lost).toContain("AbortError");
  await go();
  await kept;
  expect([log.includes("encoded 5"), log.includes("encoded 6")]).toEqual([false, true]);
  const again = images.encode([gone], never);
  await go();
  expect((await again)[0]?.[0]?.rows).toBe(5);
});

test("a file that is no image, too large or damaged is named by its number, and not kept", async () => {
  const { images, log } = makeWorld();
  const large = Uint8Array.from([...Buffer.from("GIF89a"), 0x80, 0x80, 0x80, 0x80]);
  const none = images.read([file(1), Buffer.from("none")]);
  await expect(none).rejects.toMatchObject({
    code: "bad_request",
    message: expect.stringMatching(/^image 2 of 2: exp/),
  });
  const size = expect.stringMatching(/^image 1 of 1: GIF: .*megapixels/);
  await expect(images.read([large])).rejects.toMatchObject({ code: "bad_request", message: size });
  const damaged = file(9);
  await images.read([file(1), damaged]);
  for (let time = 0; time < 2; time++) {
    const message = "image 2 of 2: GIF of 9×1: damaged or cut off (nothing left)";
    await expect(images.encode([damaged], never)).rejects.toMatchObject({
      code: "bad_request",
      message,
    });
  }
  expect(log).toEqual(["encoded", "encoded"]);
});

test.each(["vectorBytes", "memoryBytes"])("rows are kept up to a limit, the most recently used: %s", async (kind) => {
  const { images, log, go } = makeWorld({ [kind]: 100 * MIB });
  for (const width of [1, 2, 1, 3, 1, 2]) {
    // 3 drops 2, 2 drops 3
    const image = file(width);
    await images.read([image]);
    const encoding = images.encode([image], never);
    if (log.at(-1) === "encoded") await go();
    await encoding;
  }
  expect(log.filter((line) => line.startsWith("encode "))).toEqual(["encode 1", "encode 2", "encode 3", "encode 2"]);
});

test("a file is measured once while its layout is kept, also across requests", async () => {
  const measured: number[] = [];
  const sense: Sense = {
    name: "recording",
    async layout(bytes) {
      measured.push(bytes[0]!);
      if (bytes[0] === 9) throw new AppError("too_large", "audio: WAV: expected less, got more");
      return [{ kind: "rows", rows: 1, positions: 1 }];
    },
    encode: () => Promise.reject(new Error("it is only measured")),
  };
  const images = makeImages({ senseOf: () => sense, close() {}, onImage() {} });
  await images.read([Uint8Array.of(1), Uint8Array.of(2)]);
  await images.read([Uint8Array.of(1)]);
  expect(measured).toEqual([1, 2]);
  await expect(images.read([Uint8Array.of(1), Uint8Array.of(9)])).rejects.toMatchObject({
    code: "bad_request",
    message: "recording 2 of 2: WAV: expected less, got more",
  });
});

test("an encoding that was cancelled and finishes anyway counts once in the limit", async () => {
  const waiting: (() => void)[] = [];
  let encoded = 0;
  const eyes: Eyes = {
    encoder: {
      layout: ({ width }) => [{ kind: "rows", rows: width, positions: width }],
      async encode({ width }) {
        encoded++;
        await new Promise<void>((resolve) => waiting.push(resolve));
        return [{ kind: "rows", rows: width, vectors: new Float32Array((100 * MIB) / 4), isTwoWay: false }];
      },
      close() {},
    },
    decode: async (bytes) => ({ width: bytes[6]!, height: 1, data: new Uint8Array() }),
  };
  const images = makeImages({ ...vision(eyes), onImage() {} });
  const go = async (): Promise<void> => {
    while (waiting.length === 0) await Bun.sleep(0);
    waiting.shift()!();
  };
  const [one, two] = [file(1), file(2)];
  await images.read([one, two]);
  const abort = new AbortController();
  const lost = images.encode([one], abort.signal); // its encoder ignores signals
  while (waiting.length === 0) await Bun.sleep(0);
  abort.abort();
  const again = images.encode([one], never);
  await go();
  await go();
  await Promise.all([lost, again]);
  const other = images.encode([two], never);
  await go();
  await other;
  await images.encode([one], never); // both have room
  expect(encoded).toBe(3);
});
