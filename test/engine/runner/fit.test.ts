import { expect, test } from "bun:test";
import fc from "fast-check";
import { AppError } from "../../../src/base/errors.ts";
import { fitMessages } from "../../../src/engine/runner/fit.ts";

interface Turn {
  readonly role: string;
  readonly text: string;
}

const turn = (role: string, text: string): Turn => ({ role, text });
const render = (turns: readonly Turn[]): string => turns.map(({ text }) => text).join("");
const fitsIn = (limit: number) => (prompt: string) => prompt.length <= limit;

test("a conversation that fits is not cut", () => {
  const fitted = fitMessages([turn("user", "abc")], { render, fits: fitsIn(3) });
  expect(fitted).toEqual({ prompt: "abc", wasCut: false });
});

test("the fewest oldest messages are dropped, never system messages or the last one", () => {
  const role = fc.constantFrom("system", "user", "assistant");
  const turns = fc.array(fc.tuple(role, fc.nat(5)), { minLength: 1, maxLength: 12 });
  fc.assert(
    fc.property(turns, fc.nat(30), (made, limit) => {
      const messages = made.map(([who, length], i) => turn(who, String.fromCharCode(97 + i).repeat(length)));
      const fitted = fitMessages(messages, { render, fits: fitsIn(limit) });
      const may = messages.filter(({ role: who }, i) => who !== "system" && i < messages.length - 1);
      let kept = messages;
      for (const gone of may) {
        if (render(kept).length <= limit) break;
        kept = kept.filter((message) => message !== gone);
      }
      expect(fitted).toEqual({ prompt: render(kept), wasCut: kept.length < messages.length });
    }),
    { seed: 9, numRuns: 500 },
  );
});

test("a conversation that is cut leaves room for the answer", () => {
  const messages = ["aa", "bb", "cc", "dd"].map((text) => turn("user", text));
  const fits = (prompt: string, { isWhole }: { isWhole: boolean }) => prompt.length <= (isWhole ? 7 : 5);
  expect(fitMessages(messages, { render, fits })).toEqual({ prompt: "ccdd", wasCut: true });
  expect(fitMessages(messages.slice(1), { render, fits })).toEqual({ prompt: "bbccdd", wasCut: false });
});

test("fitting 5,000 messages takes fewer than 20 renderings", () => {
  let renderings = 0;
  const messages = Array.from({ length: 5000 }, (_, i) => turn("user", `${i} `));
  const counted = (turns: readonly Turn[]): string => {
    renderings++;
    return render(turns);
  };
  const { prompt } = fitMessages(messages, { render: counted, fits: fitsIn(50) });
  expect(prompt.startsWith("4990 ")).toBe(true);
  expect(renderings).toBeLessThan(20);
});

test("a conversation is cut to begin with the user if its template demands that", () => {
  const picky = (turns: readonly Turn[]): string => {
    if (turns[0]?.role === "assistant") throw new AppError("bad_request", "roles must alternate");
    return render(turns);
  };
  const messages = ["q1", "a1", "q2", "a2", "q3"].map((text) => turn(text[0] === "q" ? "user" : "assistant", text));
  for (const [limit, prompt] of [
    [8, "q2a2q3"],
    [6, "q2a2q3"],
    [5, "q3"],
    [1, "q3"],
  ] as const) {
    expect(fitMessages(messages, { render: picky, fits: fitsIn(limit) })).toEqual({ prompt, wasCut: true });
  }
});

test("the last question is kept if the template demands one, however many tool calls follow it", () => {
  let renderings = 0;
  const picky = (turns: readonly Turn[]): string => {
    renderings++;
    if (!turns.some(({ role }) => role === "user")) throw new AppError("bad_request", "No user query found");
    return render(turns);
  };
  const calls = Array.from({ length: 500 }, (_, i) => [turn("assistant", `c${i} `), turn("tool", `r${i} `)]).flat();
  const messages = [turn("system", "s "), turn("user", "q0 "), turn("assistant", "a0 "), turn("user", "q1 "), ...calls];
  const fitted = fitMessages(messages, { render: picky, fits: fitsIn(26) });
  expect(fitted).toEqual({ prompt: "s q1 c498 r498 c499 r499 ", wasCut: true });
  expect(renderings).toBeLessThan(20);
  expect(fitMessages(messages, { render, fits: fitsIn(23) }).prompt).toBe("s c498 r498 c499 r499 ");
});

test("a conversation that ends with the assistant is cut to begin with the user if its template demands that", () => {
  const picky = (turns: readonly Turn[]): string => {
    if (turns[0]?.role !== "user") throw new AppError("bad_request", "roles must alternate");
    return render(turns);
  };
  const messages = ["q1", "a1", "q2", "a2"].map((text) => turn(text[0] === "q" ? "user" : "assistant", text));
  expect(fitMessages(messages, { render: picky, fits: fitsIn(5) })).toEqual({ prompt: "q2a2", wasCut: true });
  expect(fitMessages(messages.slice(2), { render: picky, fits: fitsIn(3) }).prompt).toBe("q2a2"); // is too long
});

test("an error other than a template's refusal is thrown", () => {
  const broken = (turns: readonly Turn[]): string => {
    if (turns.length < 3) throw new TypeError("bug");
    return render(turns);
  };
  const messages = ["a", "b", "c"].map((text) => turn("user", text));
  expect(() => fitMessages(messages, { render: broken, fits: fitsIn(1) })).toThrow("bug");
});

test("results of tools are dropped together with their call", () => {
  const messages = [
    turn("system", "s"),
    turn("user", "aaaa"),
    turn("assistant", "b"), // calls two tools
    turn("tool", "cc"),
    turn("tool", "dd"),
    turn("assistant", "e"),
    turn("user", "f"),
    turn("assistant", "g"), // calls two more
    turn("tool", "hhh"),
    turn("tool", "i"),
  ];
  for (const [limit, prompt] of [
    [15, "sbccddefghhhi"],
    [12, "sefghhhi"],
    [8, "sefghhhi"],
    [7, "sfghhhi"],
    [6, "sghhhi"],
    [5, "shhhi"], // a result without its call is better than none
    [2, "si"],
  ] as const) {
    expect(fitMessages(messages, { render, fits: fitsIn(limit) })).toEqual({ prompt, wasCut: true });
  }
});
