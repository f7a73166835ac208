import { expect, test } from "bun:test";
import { linesOf } from "../../src/base/lines.ts";
import { cpuMs } from "../cpu-time.ts";

async function* bodyOf(pieces: Iterable<string | Uint8Array>): AsyncGenerator<Uint8Array, void, void> {
  for (const piece of pieces) yield typeof piece === "string" ? new TextEncoder().encode(piece) : piece;
}

const tooLong = (): Error => new Error("too long");
const read = (pieces: Iterable<string | Uint8Array>, max = 100) =>
  Array.fromAsync(linesOf(bodyOf(pieces), { max, tooLong }));

test("a body cut at any byte gives the same lines, without empty ones", async () => {
  expect(await read(["a", "b\n\nc", "\n", "", "\nd\ne", "f"])).toEqual(["ab", "c", "d", "ef"]);
  const bytes = new TextEncoder().encode("ä€😀\n😀");
  expect(await read(Array.from(bytes, (byte) => Uint8Array.of(byte)))).toEqual(["ä€😀", "😀"]);
  expect(await read([])).toEqual([]);
});

test("a line without an end is refused once it is too long", async () => {
  await expect(read(["a".repeat(60), "a".repeat(60)])).rejects.toThrow("too long");
});

test("a line of 16 MiB in 16,384 pieces is read in less than 3 seconds of processor time", async () => {
  const pieces = Array.from({ length: 16_384 }, () => "a".repeat(1024));
  const before = cpuMs();
  const [line] = await read([...pieces, "\n"], 2 ** 25);
  expect(line).toHaveLength(2 ** 24);
  expect(cpuMs() - before).toBeLessThan(3000);
});
