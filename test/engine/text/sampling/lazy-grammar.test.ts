/** A grammar that begins where an answer opens a call: where that is, and which token opens it. */
import { afterAll, beforeAll, describe, expect, test } from "bun:test";
import { makeGrammarCompiler, type GrammarCompiler } from "../../../../src/engine/text/sampling/grammar.ts";
import { makeLazyGrammar, type LazyGrammar } from "../../../../src/engine/text/sampling/lazy-grammar.ts";
import { makeWatch } from "../../../../src/engine/text/sampling/trigger-watch.ts";

describe("a trigger", () => {
  const triggers = [
    { text: "<call>", grammar: 0 },
    { text: "{go", grammar: 1, atStart: true },
  ];
  const watch = (isThinking = false, thinking?: { open: string; close: string }) =>
    makeWatch({ triggers, ...(thinking ? { thinking } : {}) }, isThinking);

  test("is found at its end, however the text is cut, with the rest of the piece", () => {
    for (const pieces of [["a <call>x"], ["a <", "call>x"], ["a ", "<cal", "l", ">x"]]) {
      const one = watch();
      for (const piece of pieces.slice(0, -1)) expect([one.find(piece), one.push(piece)]).toEqual([undefined, false]);
      const last = pieces.at(-1)!;
      expect(one.find(last)).toEqual({ grammar: 0, rest: "x", opening: last.slice(0, -1) });
      expect(one.push(last)).toBe(true);
    }
  });

  test("with atStart is found only at the start and behind a call", () => {
    const one = watch();
    expect(one.find("  {go")).toMatchObject({ grammar: 1 });
    one.push("so ");
    expect(one.find("{go")).toBeUndefined();
    one.restart();
    one.push("; ");
    expect(one.find("{go")).toMatchObject({ grammar: 1 });
  });

  test("is not found inside thoughts", () => {
    const tags = { open: "<think>", close: "</think>" };
    for (const [isOpen, before] of [
      [false, "\n<think>"],
      [true, ""],
    ] as const) {
      const one = watch(isOpen, tags);
      one.push(before);
      expect(one.push("a <call> b {go")).toBe(false);
      one.push("</thi");
      expect(one.find("nk>\n{go")).toMatchObject({ grammar: 1, opening: "nk>\n{go" });
      one.push("nk>");
      expect(one.find("<call>")).toMatchObject({ grammar: 0 });
    }
    const none = watch(false, tags);
    none.push("<thi");
    expect(none.find("s> <call>")).toMatchObject({ grammar: 0 });
  });

  test("is found in a long text", () => {
    const one = watch();
    for (let i = 0; i < 1000; i++) expect(one.push("<call <call")).toBe(false);
    expect(one.push(">")).toBe(true);
  });
});

describe("an answer", () => {
  const tokens = ["<call>", "<call>x", "<call>1", "<", ">", "c", "a", "l", "1", "2", ".", "x", "<end>"];
  const vocabulary = { tokens, kind: "raw", prependSpace: false, vocabSize: tokens.length, stopIds: [12] } as const;
  const CALL = 'call ::= [0-9] [0-9] "."\n';
  let compiler: GrammarCompiler;
  beforeAll(() => void (compiler = makeGrammarCompiler(vocabulary)));
  afterAll(() => compiler.dispose());

  const make = (given: Partial<LazyGrammar> = {}, parts: { isThinking?: boolean; thinkingMax?: number } = {}) =>
    makeLazyGrammar(
      { grammars: [{ rules: CALL }], triggers: [{ text: "<call>", grammar: 0 }], once: false, ...given },
      {
        vocabSize: tokens.length,
        bytesOf: (id) => new TextEncoder().encode(tokens[id]),
        isStop: (text) => text === "<end>",
        thinkingMax: Infinity,
        isThinking: false,
        compiler: async () => compiler,
        ...parts,
      },
    );
  const idOf = (token: string): number => tokens.indexOf(token);
  const allowed = (mask: Int32Array | undefined): string[] | undefined =>
    mask && tokens.filter((_, id) => ((mask[id >> 5]! >>> (id & 31)) & 1) === 1);

  /** The settled tokens for the chosen ones, and whether the answer is over. */
  async function say(matcher: ReturnType<typeof make>, ...chosen: string[]): Promise<[string[], boolean]> {
    const said: string[] = [];
    let isOver = false;
    for (const token of chosen) {
      const id = await matcher.settle!(idOf(token));
      said.push(tokens[id]!);
      expect(matcher.accept(id)).toBe(true);
      isOver = await matcher.isOver();
    }
    return [said, isOver];
  }

  test("is free until a call opens, and constrained until it closes", async () => {
    const matcher = make();
    expect(matcher.isFree).toBe(true);
    await say(matcher, "x", "1", "<", "c");
    expect(await matcher.mask()).toBeUndefined();
    await say(matcher, "<call>");
    expect([matcher.isFree, allowed(await matcher.mask())]).toEqual([false, ["1", "2"]]);
    await say(matcher, "1", "2");
    expect(allowed(await matcher.mask())).toEqual(["."]);
    expect(await say(matcher, ".")).toEqual([["."], false]);
    expect([matcher.isFree, await matcher.mask()]).toEqual([true, undefined]);
    await say(matcher, "x", "<call>");
    expect(matcher.isFree).toBe(false);
    matcher.dispose();
  });

  test("may contain a token that both opens a call and begins its content", async () => {
    const matcher = make();
    expect(await say(matcher, "<call>1")).toEqual([["<call>1"], false]);
    await say(matcher, "2");
    expect(allowed(await matcher.mask())).toEqual(["."]);
    matcher.dispose();
  });

  test("gets only the opening if a token continues it with text that no call begins with", async () => {
    const matcher = make();
    expect(await say(matcher, "<call>x")).toEqual([["<call>"], false]);
    expect(allowed(await matcher.mask())).toEqual(["1", "2"]);
    matcher.dispose();

    const split = makeLazyGrammar(
      { grammars: [{ rules: CALL }], triggers: [{ text: "ca", grammar: 0 }], once: false },
      {
        vocabSize: tokens.length,
        bytesOf: (id) => new TextEncoder().encode(id === idOf("<call>x") ? "cax" : tokens[id]),
        isStop: () => false,
        thinkingMax: Infinity,
        isThinking: false,
        compiler: async () => compiler,
      },
    );
    expect(await split.settle!(idOf("<call>x"))).toBe(idOf("c"));
    split.accept(idOf("c"));
    expect([split.isFree, allowed(await split.mask())]).toEqual([false, ["a"]]);
    split.accept(idOf("a"));
    expect(allowed(await split.mask())).toEqual(["1", "2"]);
    split.dispose();
  });

  test.each([
    [0, false],
    [2, false],
    [0, true],
    [2, true],
  ])("has its thoughts closed after %i tokens, opened by the prompt: %p", async (thinkingMax, isThinking) => {
    const matcher = make({ thinking: { open: "<call>", close: "al" } }, { isThinking, thinkingMax });
    if (!isThinking) await say(matcher, "<call>");
    for (let i = 0; i < thinkingMax; i++) {
      expect(await matcher.mask()).toBeUndefined();
      await say(matcher, "x");
    }
    expect(allowed(await matcher.mask())).toEqual(["a"]);
    await say(matcher, "a");
    expect(allowed(await matcher.mask())).toEqual(["l"]);
    await say(matcher, "l", "x", "x", "x", "x");
    expect(matcher.isFree).toBe(true);
    await say(matcher, "<call>");
    expect(matcher.isFree).toBe(false);
    matcher.dispose();
  });

  test("ends after its first call with once", async () => {
    const matcher = make({ once: true });
    expect(await say(matcher, "<call>", "1", "2", ".")).toEqual([["<call>", "1", "2", "."], true]);
    matcher.dispose();
  });

  test("must end behind a call whose end is a stop token", async () => {
    for (const end of ["", "<end>"]) {
      const matcher = make({ grammars: [{ rules: CALL, end }] });
      await say(matcher, "<call>", "1", "2", ".");
      expect(allowed(await matcher.mask())).toEqual(["<end>"]);
      matcher.dispose();
    }
    const matcher = make({ grammars: [{ rules: CALL, end: "x" }] });
    await say(matcher, "<call>", "1", "2", ".");
    expect(allowed(await matcher.mask())).toEqual(["x"]);
    await say(matcher, "x");
    expect(matcher.isFree).toBe(true);
    matcher.dispose();
  });
});
