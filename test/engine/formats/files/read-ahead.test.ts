/** Reads a mapped file ahead: in order, in pieces, with progress, and only if that is useful. */
import { expect, test } from "bun:test";
import { readAhead } from "../../../../src/engine/formats/files/read-ahead.ts";

const MIB = 2 ** 20;

/** A disk that delivers a piece several checks after its request. */
function makeDisk(byteLength: number, { looks = 3, known = 0 } = {}) {
  const asked: number[] = [];
  const progress: number[] = [];
  const left = new Map<number, number>();
  const options = {
    byteLength,
    isOpen: () => true,
    onProgress: (fraction: number) => void progress.push(fraction),
    signal: undefined as AbortSignal | undefined,
    freeBytes: () => 10_000 * MIB,
    advise: (offset: number) => {
      asked.push(offset / MIB);
      left.set(offset, looks);
    },
    resident(offset: number, length: number) {
      if (length === byteLength) return known;
      const more = left.get(offset) ?? Infinity;
      left.set(offset, more - 1);
      return more <= 0 ? length : 0;
    },
  };
  return { asked, progress, options };
}

test("pieces are requested in order, at most four ahead, and each reports progress", async () => {
  const { asked, progress, options } = makeDisk(100 * MIB);
  let most = 0;
  const { onProgress } = options;
  await readAhead({
    ...options,
    onProgress(fraction) {
      onProgress(fraction);
      most = Math.max(most, asked.length - progress.length);
    },
  });
  expect(asked).toEqual([0, 16, 32, 48, 64, 80, 96]);
  expect(progress).toHaveLength(7);
  expect(progress.toSorted((a, b) => a - b)).toEqual(progress);
  expect(progress.at(-1)).toBe(1);
  expect(most).toBeLessThanOrEqual(4);
});

test("nothing is requested if the file is in memory, does not fit, or cannot be inspected", async () => {
  const there = makeDisk(100 * MIB, { known: 99.5 * MIB });
  await readAhead(there.options);
  const large = makeDisk(100 * MIB);
  await readAhead({ ...large.options, available: 110 * MIB });
  const withoutResidency = makeDisk(100 * MIB);
  const { resident: _, ...options } = withoutResidency.options;
  await readAhead(options);
  expect([...there.asked, ...large.asked, ...withoutResidency.asked]).toEqual([]);
});

test("an aborted load and a closed file end the wait", async () => {
  const stuck = makeDisk(100 * MIB, { looks: 1e9 });
  const abort = new AbortController();
  const reading = readAhead({ ...stuck.options, signal: abort.signal });
  setTimeout(() => abort.abort(), 20);
  expect(await reading.catch((error: unknown) => error)).toMatchObject({ code: "cancelled" });
  const closed = makeDisk(100 * MIB, { looks: 1e9 });
  await readAhead({ ...closed.options, isOpen: () => false });
  expect(closed.progress).toEqual([]);
});

test("an abort takes effect between pieces that arrive at once", async () => {
  const { asked, options } = makeDisk(200 * MIB, { looks: 0 });
  const abort = new AbortController();
  const onProgress = (): void => void setTimeout(() => abort.abort(), 0);
  const reading = readAhead({ ...options, onProgress, signal: abort.signal });
  expect(await reading.catch((error: unknown) => error)).toMatchObject({ code: "cancelled" });
  expect(asked.length).toBeLessThan(13);
});

test("a large file is sampled to decide if it is in memory", async () => {
  const lookedAt = async (isThere: (offset: number) => boolean) => {
    const { asked, options } = makeDisk(2000 * MIB, { looks: 0 });
    let bytes = 0;
    const resident = (offset: number, length: number): number => {
      if (asked.length > 0) return options.resident(offset, length);
      bytes += length;
      return isThere(offset) ? length : 0;
    };
    const abort = new AbortController();
    const onProgress = (): void => abort.abort();
    await readAhead({ ...options, resident, onProgress, signal: abort.signal }).catch(() => {});
    return { asked: asked.length > 0, bytes };
  };
  expect(await lookedAt(() => true)).toEqual({ asked: false, bytes: 4 * MIB });
  expect(await lookedAt((offset) => offset < 1990 * MIB)).toEqual({ asked: false, bytes: 4 * MIB });
  expect((await lookedAt((offset) => offset < 1900 * MIB)).asked).toBe(true);
  expect((await lookedAt((offset) => offset >= 100 * MIB)).asked).toBe(true);
});
