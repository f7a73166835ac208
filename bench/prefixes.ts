/**
 * Time to the first token of the turns of several concurrent chats, more than there are slots, and of the next turn
 * after a restart of the server: shows how much is evaluated again.
 *
 *   bun bench/prefixes.ts [--model FILE.gguf] [--chats 8] [--turns 10] [--words 60] [--tokens 32] [--record]
 *
 * The goals: turn 10 at most 1.3 times turn 1, which has as much new text; after a restart at most 1.5 times.
 */
import { parseArgs } from "node:util";
import type { Hearth } from "../test/e2e/hearth.ts";
import { writeRecord } from "./report/record.ts";
import { ask, median, withServer, words } from "./streamed.ts";

const { values: flags } = parseArgs({
  options: {
    model: { type: "string" },
    chats: { type: "string", default: "8" },
    turns: { type: "string", default: "10" },
    words: { type: "string", default: "60" },
    tokens: { type: "string", default: "32" },
    record: { type: "boolean", default: false },
  },
});
const [chats, turns, count, num_predict] = [flags.chats, flags.turns, flags.words, flags.tokens].map(Number) as [
  number,
  number,
  number,
  number,
];

await withServer(flags.model, async ({ start, model }) => {
  let hearth = await start();
  // Ids: a random model's text would be tokenized into several times as many tokens, which were never cached.
  const history: number[][] = Array.from({ length: chats }, () => []);
  const turn = async (chat: number, number: number): Promise<number> => {
    const prompt = `${chat} ${String(number).padStart(2)}: ${words(chat * 100 + 10 + (number % 9), count)}`;
    const options = { temperature: 0, num_predict };
    const { firstMs, end } = await ask(hearth, "/api/generate", { model, prompt, context: history[chat], options });
    history[chat] = end["context"] as number[];
    return firstMs;
  };
  const load = async (): Promise<void> => {
    await ask(hearth, "/api/generate", { model, prompt: "warm", raw: true, options: { num_predict: 4 } });
  };
  await load();
  const firsts: number[] = [];
  console.log(
    `${chats} chats of ${turns} turns, ${count} words and ${num_predict} tokens each; first token, ms, median`,
  );
  for (let number = 1; number <= turns; number++) {
    const all: number[] = [];
    for (let chat = 0; chat < chats; chat++) all.push(await turn(chat, number));
    firsts.push(median(all));
    console.log(`  turn ${String(number).padStart(2)}   ${median(all).toFixed(1).padStart(8)}`);
  }
  await Bun.sleep(2000); // the snapshots are written
  await quit(hearth);
  hearth = await start();
  await load();
  const after: number[] = [];
  for (let chat = 0; chat < chats; chat++) after.push(await turn(chat, turns + 1));
  console.log(`  restarted ${median(after).toFixed(1).padStart(8)}`);
  const first = firsts[0]!;
  if (flags.record) {
    const what = `${chats} chats, ${count} words a turn`;
    const times = (measure: string, ms: number, atMost: number) =>
      ({ what, measure, unit: "times turn 1", ours: [ms / first], goal: { of: "value", atMost } }) as const;
    const figures = [
      { what, measure: "first token of turn 1", unit: "ms", ours: [first] },
      times(`first token of turn ${turns}`, firsts.at(-1)!, 1.3),
      times("after a restart", median(after), 1.5),
    ];
    writeRecord("prefixes", { title: "Turns of chats, which keep their prefixes", figures });
  }
  console.log(
    `turn ${turns}: ${(firsts.at(-1)! / first).toFixed(2)} times turn 1 (at most 1.3 is wanted); ` +
      `after a restart: ${(median(after) / first).toFixed(2)} times (at most 1.5)`,
  );
});

/** Stops it like a person would. */
async function quit(hearth: Hearth): Promise<void> {
  hearth.process.kill("SIGTERM");
  await hearth.process.exited;
}
