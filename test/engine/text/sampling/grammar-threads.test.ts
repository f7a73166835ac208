/** Large grammars in real threads: the same masks as without, while the model's thread continues. */
import { afterEach, expect, setDefaultTimeout, test } from "bun:test";
import { AppError } from "../../../../src/base/errors.ts";
import { openGrammarThread } from "../../../../src/engine/runner/grammar-thread.ts";
import {
  makeGrammarCompiler,
  type GrammarCompiler,
  type GrammarVocabulary,
} from "../../../../src/engine/text/sampling/grammar.ts";
import {
  withThreads,
  type OpenGrammarThread,
  type ToGrammarThread,
} from "../../../../src/engine/text/sampling/grammar-threads.ts";
import { schemaGrammar } from "../../../../src/engine/text/sampling/schema/compile.ts";
import { answer, makeLogits } from "./walk.ts";

setDefaultTimeout(60_000);

const ASCII = Array.from({ length: 95 }, (_, i) => String.fromCharCode(32 + i));
const vocabulary: GrammarVocabulary = {
  tokens: [...ASCII, '{"', '": ', '", "', "<end>"],
  kind: "raw",
  prependSpace: false,
  vocabSize: ASCII.length + 4,
  stopIds: [ASCII.length + 3],
};
const logits = makeLogits(vocabulary, 5);
const textOf = (ids: readonly number[]): string => ids.map((id) => vocabulary.tokens[id]!).join("");

/** Thirty texts, each with a pattern of its own: half a second's work. */
const large = (first = "p"): Record<string, unknown> => {
  const names = Array.from({ length: 30 }, (_, i) => `${first}${i}`);
  const pattern = (i: number): string => `^[a-${"bcdefghij"[i % 9]}]{1,${50 + i}}x$`;
  const properties = Object.fromEntries(names.map((name, i) => [name, { type: "string", pattern: pattern(i) }]));
  return { type: "object", required: names, properties };
};
const SMALL = { type: "object", properties: { a: { type: "boolean" } }, required: ["a"] };

let compiler: GrammarCompiler | undefined;
afterEach(() => compiler?.dispose());

/** The messages to each thread. */
function start(): { compiler: GrammarCompiler; sent: ToGrammarThread["kind"][][]; fail: () => void } {
  const sent: ToGrammarThread["kind"][][] = [];
  let failLast = (): void => {};
  const open: OpenGrammarThread = (receive, fail) => {
    const inner = openGrammarThread(receive, fail);
    const own: ToGrammarThread["kind"][] = [];
    sent.push(own);
    failLast = () => fail("it was ended by the test");
    return { ...inner, send: (message) => (own.push(message.kind), inner.send(message)) };
  };
  compiler = withThreads(makeGrammarCompiler(vocabulary), { vocabulary, open });
  return { compiler, sent, fail: () => failLast() };
}

test("a large schema on a thread gives the answers of one without, and a small schema starts no thread", async () => {
  const { compiler, sent } = start();
  const plain = makeGrammarCompiler(vocabulary);
  for (const seed of [1, 2, 3]) {
    const options = { vocabulary, logits, textOf, seed, limit: 80 };
    expect(await answer(compiler, SMALL, options)).toEqual(await answer(plain, SMALL, options));
    if (seed === 1) expect(sent).toEqual([]);
    expect(await answer(compiler, large(), options)).toEqual(await answer(plain, large(), options));
  }
  plain.dispose();
  expect(sent).toHaveLength(1);
  expect(sent[0]!.filter((kind) => kind === "start")).toHaveLength(3);
});

test("the event loop runs while a large schema compiles", async () => {
  const { compiler } = start();
  (await compiler.matcher(SMALL)).dispose(); // loads the library
  let turns = 0;
  const turn = (): void => {
    turns++;
    timer = setImmediate(turn);
  };
  let timer = setImmediate(turn);
  const matcher = await compiler.matcher(large());
  clearImmediate(timer);
  matcher.dispose();
  expect(turns).toBeGreaterThan(50);
});

test("a thread in use compiles no other schema, and a free one does", async () => {
  const { compiler, sent } = start();
  const first = await compiler.matcher(large());
  const again = await compiler.matcher(large());
  const second = await compiler.matcher(large("q"));
  expect(sent).toHaveLength(2);
  first.dispose();
  again.dispose();
  const third = await compiler.matcher(large("r"));
  expect(sent).toHaveLength(2);
  for (const each of [second, third]) each.dispose();
});

test("a new schema waits for a thread while all are in use", async () => {
  const { compiler, sent } = start();
  const used = await Promise.all(["a", "b", "c", "d"].map((name) => compiler.matcher(large(name))));
  let isThere = false;
  const fifth = compiler.matcher(large("e")).then((matcher) => ((isThere = true), matcher));
  await used[0]!.mask();
  expect([sent.length, isThere]).toEqual([4, false]);
  used[2]!.dispose();
  (await fifth).dispose();
  expect(sent.map((kinds) => kinds.filter((kind) => kind === "start").length)).toEqual([1, 1, 2, 1]);
});

test("the grammar of a call does not wait for a thread", async () => {
  const { compiler, sent } = start();
  const used = await Promise.all(["a", "b", "c", "d"].map((name) => compiler.matcher(large(name))));
  const { text } = schemaGrammar(
    large("e with a name that is long enough for a grammar of its own thread, as those of large schemas are "),
  );
  expect(text.length).toBeGreaterThan(6000);
  const begun = compiler.begin({ text, closes: true }, "{");
  const matcher = await Promise.race([begun, Bun.sleep(20_000)]);
  expect(matcher).toBeDefined();
  expect(sent).toHaveLength(4);
  for (const each of [...used, matcher!]) each.dispose();
});

test("an error in a schema is the same as without threads, and the thread stays usable", async () => {
  const { compiler } = start();
  const wrong = { ...large(), properties: { ...(large()["properties"] as object), p7: { type: "nothing" } } };
  const error: unknown = await compiler.matcher(wrong).catch((reason: unknown) => reason);
  expect(error).toBeInstanceOf(AppError);
  expect(error).toMatchObject({ code: "bad_request", message: expect.stringContaining("p7") });
  (await compiler.matcher(large())).dispose();
});

test("a thread that fails fails its answers, and the next schema starts another", async () => {
  const { compiler, sent, fail } = start();
  const matcher = await compiler.matcher(large());
  fail();
  matcher.accept(0);
  const failed = matcher.mask().then(
    () => "a mask",
    (error: AppError) => error.message,
  );
  expect(await Promise.race([failed, Bun.sleep(20_000).then(() => "nothing")])).toContain("its thread failed");
  matcher.dispose();
  (await compiler.matcher(large())).dispose();
  expect(sent).toHaveLength(2);
});
