/**
 * Time to the first token of each turn of a long chat, streamed by the real server: the delay between sending a message
 * and the first word of the answer. Several source trees are measured alternately, A B A B, on the same machine.
 *
 *   bun bench/chat-latency.ts [TREE…] [--starts 5] [--rounds 5] [--turns 20] [--words 24] [--tokens 16]
 *     [--model FILE.gguf]
 *
 * A tree is a folder with src/main.ts; the first is the baseline. Default: this one. Without --model it uses the
 * embedded model. Two starts of one tree differ by up to 10 %, whatever the number of rounds: compare trees by the
 * median of several starts.
 */
import { mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join, resolve } from "node:path";
import { parseArgs } from "node:util";
import { startHearth, type Hearth } from "../test/e2e/hearth.ts";
import { installFile } from "./install-file.ts";

const { values: flags, positionals } = parseArgs({
  allowPositionals: true,
  options: {
    starts: { type: "string", default: "5" },
    rounds: { type: "string", default: "5" },
    turns: { type: "string", default: "20" },
    words: { type: "string", default: "24" },
    tokens: { type: "string", default: "16" },
    model: { type: "string" },
  },
});
const trees = positionals.length > 0 ? positionals : [resolve(import.meta.dir, "..")];
const [starts, rounds, turns] = [Number(flags.starts), Number(flags.rounds), Number(flags.turns)];
const [words, tokens] = [Number(flags.words), Number(flags.tokens)];
const VOCABULARY =
  "the fox went to a small house near river and saw two red birds that sang about rain sun boats".split(" ");

interface Side {
  readonly tree: string;
  readonly home: string;
  readonly hearth: Hearth;
  /** For each chat, milliseconds to the first token of each turn. */
  readonly chats: number[][];
}

let model = "hearth";
/** For each tree, the times of each start: milliseconds to the first token of each turn of each chat. */
const measured = new Map<string, number[][][]>(trees.map((tree) => [tree, []]));
for (let start = 0; start < starts; start++) {
  for (const { tree, chats } of await measureStart(start)) measured.get(tree)!.push(chats);
}
report();

/** Starts a server for each tree, lets all of them chat alternately, and stops them. */
async function measureStart(start: number): Promise<Side[]> {
  const sides: Side[] = [];
  try {
    for (const tree of start % 2 === 0 ? trees : trees.toReversed()) {
      const home = mkdtempSync(join(tmpdir(), "hearth-chat-latency-"));
      const root = join(home, ".hearth", "models");
      if (flags.model) model = await installFile({ root, file: resolve(flags.model), name: "bench" });
      sides.push({ tree, home, hearth: await startHearth({ home, main: resolve(tree, "src/main.ts") }), chats: [] });
    }
    for (const side of sides) await chat(side, 0); // loads the model
    for (const side of sides) side.chats.length = 0;
    for (let round = 1; round <= rounds; round++) {
      for (const side of round % 2 === 0 ? sides.toReversed() : sides) await chat(side, round);
    }
    return sides;
  } finally {
    for (const { hearth, home } of sides) {
      await hearth.stop();
      rmSync(home, { recursive: true, force: true });
    }
  }
}

/** One chat of all turns; the same words for every side, different ones for every round. */
async function chat({ hearth, chats }: Side, round: number): Promise<void> {
  const messages: { role: string; content: string }[] = [];
  const firsts: number[] = [];
  for (let turn = 0; turn < turns; turn++) {
    messages.push({ role: "user", content: sentence(round * turns + turn) });
    const { firstMs, text } = await ask(hearth, messages);
    firsts.push(firstMs);
    messages.push({ role: "assistant", content: text });
  }
  chats.push(firsts);
}

function sentence(seed: number): string {
  const chosen = Array.from({ length: words }, (_, i) => VOCABULARY[(seed * 31 + i * (7 + seed)) % VOCABULARY.length]);
  return `${seed}: ${chosen.join(" ")}?`;
}

async function ask(hearth: Hearth, messages: readonly object[]): Promise<{ firstMs: number; text: string }> {
  const startedMs = performance.now();
  const options = { temperature: 0, num_predict: tokens };
  const reply = await hearth.post("/api/chat", { model, messages, options, stream: true });
  let firstMs: number | undefined;
  let body = "";
  const decoder = new TextDecoder();
  for await (const chunk of reply.body ?? []) {
    firstMs ??= performance.now() - startedMs;
    body += decoder.decode(chunk, { stream: true });
  }
  const lines = body
    .trim()
    .split("\n")
    .map((line) => JSON.parse(line));
  const failed = lines.find(({ error }) => error);
  if (firstMs === undefined || failed) throw new Error(failed?.error ?? "an empty answer");
  return { firstMs, text: lines.map(({ message }) => message.content).join("") };
}

function report(): void {
  const rows = [...measured].map(([tree, all]) => {
    const chats = all.flat();
    const perTurn = Array.from({ length: turns }, (_, turn) => median(chats.map((firsts) => firsts[turn]!)));
    const perStart = all.map((ofStart) =>
      median(ofStart.map((firsts) => firsts.reduce((sum, ms) => sum + ms) / turns)),
    );
    return { tree, perTurn, perStart };
  });
  const base = rows[0]!;
  for (const { tree, perTurn, perStart } of rows) {
    const ratios = base.perStart.map((ms, start) => ms / perStart[start]!).toSorted((a, b) => a - b);
    const shown = [1, 5, 10, 20]
      .filter((turn) => turn <= turns)
      .map((turn) => `${turn}: ${perTurn[turn - 1]!.toFixed(1)}`);
    console.log(
      `${tree}: first token after ${median(perStart).toFixed(2)} ms ` +
        `(median of ${starts} starts, ${rounds} chats of ${turns} turns each)`,
    );
    console.log(`  by turn, ms  ${shown.join("  ")}   last ten ${median(perTurn.slice(-10)).toFixed(1)}`);
    const range = `${ratios[0]!.toFixed(2)} to ${ratios.at(-1)!.toFixed(2)}`;
    console.log(`  ${median(ratios).toFixed(2)} times as fast as the first tree (starts: ${range})`);
  }
}

function median(values: readonly number[]): number {
  return values.toSorted((a, b) => a - b)[Math.floor(values.length / 2)] ?? NaN;
}
