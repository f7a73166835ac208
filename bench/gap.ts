/**
 * The time between two tokens of an answer, alone and while a long prompt of another request is processed.
 *
 *   bun bench/gap.ts [--model FILE.gguf] [--prompt 4096] [--tokens 400] [--rounds 3] [--record]
 *
 * The goal is a p99 of at most three times the p99 without the prompt.
 */
import { parseArgs } from "node:util";
import { writeRecord } from "./report/record.ts";
import { ask, median, quantile, withServer, words } from "./streamed.ts";

const { values: flags } = parseArgs({
  options: {
    model: { type: "string" },
    prompt: { type: "string", default: "4096" },
    tokens: { type: "string", default: "400" },
    rounds: { type: "string", default: "3" },
    record: { type: "boolean", default: false },
  },
});
const [prompt, tokens, rounds] = [Number(flags.prompt), Number(flags.tokens), Number(flags.rounds)];

await withServer(flags.model, async ({ start, model }) => {
  const hearth = await start();
  const options = { temperature: 1, top_k: 0, seed: 1 }; // no repetition, so that every token is a step
  const generate = (text: string, num_predict: number) =>
    ask(hearth, "/api/generate", { model, prompt: text, raw: true, options: { ...options, num_predict } });
  await generate("warm", 8);
  const [ids] = [await hearth.post("/api/tokenize", { model, content: words(1, 1000) })];
  const perWord = ids.ok ? ((await ids.json()) as { tokens: unknown[] }).tokens.length / 1000 : 1.3;
  console.log("round  idle p50  idle p99  beside p50  beside p99  worst  p99 ratio  prompt tokens  prompt s");
  const ratios: number[] = [];
  for (let round = 1; round <= rounds; round++) {
    const idle = gaps((await generate(`alone ${round}: ${words(round, 20)}`, 120)).timesMs);
    const writing = generate(`writer ${round}: ${words(round + 50, 20)}`, tokens);
    await Bun.sleep(500);
    const reading = generate(`${round} ${words(round + 100, Math.floor(prompt / perWord))}`, 1);
    const [writer, reader] = await Promise.all([writing, reading]);
    const endMs = reader.startMs + reader.firstMs;
    const beside = gaps(writer.timesMs.filter((at) => at >= reader.startMs && at <= endMs));
    const ratio = quantile(beside, 0.99) / quantile(idle, 0.99);
    ratios.push(ratio);
    const row = [quantile(idle, 0.5), quantile(idle, 0.99), quantile(beside, 0.5), quantile(beside, 0.99)];
    const numbers = [...row, Math.max(...beside)].map((ms) => ms.toFixed(1).padStart(9)).join(" ");
    const count = String(reader.end["prompt_eval_count"]).padStart(10);
    console.log(
      `${round}     ${numbers}  ${ratio.toFixed(2).padStart(8)} ${count} ${(reader.firstMs / 1000).toFixed(1).padStart(12)}`,
    );
  }
  if (flags.record) {
    const measure = "p99 of the time between tokens";
    const goal = { of: "value", atMost: 3 } as const;
    const figures = [{ what: `beside a prompt of ${prompt}`, measure, unit: "times idle", ours: ratios, goal }];
    writeRecord("gap", { title: "Answers beside a long prompt", figures });
  }
  console.log(`p99 beside a prompt: ${median(ratios).toFixed(2)} times that of idle (median; at most 3 is wanted)`);
});

function gaps(times: readonly number[]): number[] {
  return times.slice(1).map((time, i) => time - times[i]!);
}
