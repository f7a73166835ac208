/** Prompts with media, on a session whose next token depends on every row before it. */
import { describe, expect, test } from "bun:test";
import fc from "fast-check";
import { inputOf, layOut, type Media, type PromptSegment } from "../../../src/engine/batching/prompt.ts";
import { hashNext, makeBench } from "./fakes.ts";

/** An image with rows of one value. */
const image = (value: number, rows: number, more: Partial<Media> = {}): Media => ({
  hash: `${value}x${rows}`,
  rows,
  vectors: new Float32Array(rows).fill(value),
  isTwoWay: true,
  ...more,
});
const ids = (text: string): PromptSegment => ({ kind: "ids", ids: Int32Array.from(new TextEncoder().encode(text)) });
const media = (each: Media): PromptSegment => ({ kind: "media", media: each });

/** The answer of a model without any cache. */
function expected(prompt: readonly PromptSegment[], count: number): string {
  const rows = prompt.flatMap((part) => (part.kind === "ids" ? [...part.ids] : [...part.media.vectors]));
  const from = rows.length;
  while (rows.length < from + count) rows.push(hashNext(rows));
  return new TextDecoder().decode(Uint8Array.from(rows.slice(from)));
}

describe("an engine", () => {
  const asked = (value: number): PromptSegment[] => [ids("look: "), media(image(value, 9)), ids(" what is it?")];

  test("answers a repeated or another image as without a cache", async () => {
    const { ask } = makeBench({ slots: 1 });
    const cached: number[] = [];
    for (const value of [3, 3, 4, 3]) {
      const { text, prompt } = await ask("", {}, { prompt: asked(value) });
      expect(text).toBe(expected(asked(value), 8));
      cached.push(prompt!.cached);
    }
    // all but the last two rows of the same prompt; with another image, only the rows before it
    expect(cached).toEqual([0, 25, 6, 6]);
  });

  test("copies a prefix with an image from the slot that holds it", async () => {
    const { ask, session } = makeBench({ slots: 2 });
    const turns = (value: number, more: string) => [ids("look at this one: "), media(image(value, 9)), ids(more)];
    const [one, two] = await Promise.all([
      ask("", {}, { prompt: turns(3, " and say"), id: 100 }),
      ask("", {}, { prompt: turns(4, " and say"), id: 101 }),
    ]);
    expect([one.text, two.text]).toEqual([expected(turns(3, " and say"), 8), expected(turns(4, " and say"), 8)]);
    const again = await ask("", {}, { prompt: turns(4, " and tell") });
    expect(again.text).toBe(expected(turns(4, " and tell"), 8));
    expect(again.prompt!.cached).toBeGreaterThanOrEqual(27);
    expect(
      session.inputs.every(({ tokens, vectors }) => tokens.filter((id) => id < 0).length === (vectors?.length ?? 0)),
    ).toBe(true);
  });

  test("never begins or ends a run between rows that see each other both ways", async () => {
    for (const before of ["", "a", "abcdefghijklmno"]) {
      for (const after of ["", "z", "zyxwvutsrqponm"]) {
        const prompt = [ids(before), media(image(5, 21)), ids(after)];
        const { ask, session } = makeBench({ slots: 1, chunk: 8 });
        for (let time = 0; time < 2; time++) {
          expect((await ask("", {}, { prompt })).text).toBe(expected(prompt, 8));
        }
        const withRows = session.inputs.filter(({ vectors }) => vectors);
        expect(withRows.length).toBeGreaterThan(0);
        for (const { vectors, spans } of withRows) {
          expect([vectors!.length, spans?.map(({ first, end }) => end - first)]).toEqual([21, [21]]);
        }
      }
    }
  });

  test("divides rows that see only earlier rows", async () => {
    const prompt = [ids("ab"), media(image(5, 21, { isTwoWay: false })), ids("c")];
    const { ask, session } = makeBench({ slots: 1, chunk: 8 });
    expect((await ask("", {}, { prompt })).text).toBe(expected(prompt, 8));
    expect(session.inputs.some(({ spans }) => spans)).toBe(false);
    expect(session.inputs.filter(({ vectors }) => vectors).length).toBeGreaterThan(2);
  });

  test("refuses a prompt with media that is too long, and ends its answer when the context is full", async () => {
    const { ask } = makeBench({ slots: 1, ctxLen: 32 });
    const long = [ids("a"), media(image(1, 40))];
    expect((await ask("", {}, { prompt: long })).end).toMatchObject({ kind: "error", code: "bad_request" });
    const { end } = await ask("", { num_predict: 100 }, { prompt: [ids("a"), media(image(1, 10)), ids("b")] });
    expect(end).toMatchObject({ kind: "done", reason: "length" });
  });
});

describe("positions", () => {
  const grid = { of: Int32Array.of(0, 0, 0, 0, 0, 1, 0, 1, 0, 0, 1, 1), perRow: 3, length: 2 } as const;

  test("continue after an image from its length in positions, not from its number of rows", () => {
    const prompt = [ids("ab"), media(image(1, 4, { positions: grid })), ids("cd")];
    const { keys: tokens, media: placed } = layOut(prompt);
    const { positions } = inputOf({ tokens: [...tokens, 7], media: placed }, { start: 0, end: 9 });
    const rows = Array.from({ length: 9 }, (_, row) => [...positions!.subarray(3 * row, 3 * row + 3)].join(" "));
    expect(rows).toEqual(["0 0 0", "1 1 1", "2 2 2", "2 2 3", "2 3 2", "2 3 3", "4 4 4", "5 5 5", "6 6 6"]);
  });

  test("are the same however a prompt is cut into runs", () => {
    const one = image(1, 4, { positions: grid });
    const flat = image(2, 3);
    const { keys: tokens, media: placed } = layOut([
      ids("ab"),
      media(one),
      ids("c"),
      media(flat),
      media(one),
      ids("d"),
    ]);
    const whole = inputOf({ tokens, media: placed }, { start: 0, end: tokens.length }).positions!;
    fc.assert(
      fc.property(fc.nat(tokens.length - 1), fc.nat(tokens.length - 1), (a, b) => {
        const [start, end] = [Math.min(a, b), Math.max(a, b) + 1];
        const { positions } = inputOf({ tokens, media: placed }, { start, end });
        expect(positions).toEqual(whole.slice(3 * start, 3 * end));
      }),
    );
  });

  test("are left to the session if no media has positions of its own", () => {
    const { keys: tokens, media: placed } = layOut([ids("ab"), media(image(1, 2))]);
    expect(inputOf({ tokens, media: placed }, { start: 0, end: 4 }).positions).toBeUndefined();
  });
});

test("the keys of media depend on their content only, and are never ids", () => {
  const keysOf = (each: Media): readonly number[] => layOut([media(each)]).keys;
  const first = keysOf(image(1, 3));
  for (let value = 2; value < 200; value++) keysOf(image(value, 3));
  expect(keysOf(image(1, 3))).toEqual(first);
  const seen = new Set(Array.from({ length: 200 }, (_, i) => keysOf(image(i + 1, 3))).flat());
  expect([seen.size, Math.max(...seen) < 0]).toEqual([600, true]);
  expect(() => layOut([{ kind: "ids", ids: Int32Array.of(5, -2) }])).toThrow("expected ids of the vocabulary");
});
