/**
 * Are our samplers llama.cpp's? The same logits and history through both: the distributions that the samplers leave,
 * and 20,000 draws of each as a χ² test.
 *
 *   bun bench/samplers.ts LLAMA_CPP [--record] [--only NAME]    a source folder, built in its folder `build`
 *
 * `--only` takes the cases whose names begin so. `--record` writes llama.cpp's distributions for
 * test/engine/text/sampling. Needs g++.
 */
import { mkdtemp, rm } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join, resolve } from "node:path";
import { parseArgs } from "node:util";
import { DEFAULT_ORDER, type SamplerName } from "../src/engine/text/sampling/sampler-order.ts";
import { makeSampler } from "../src/engine/text/sampling/sampler.ts";
import type { SamplingOptions } from "../src/engine/text/sampling/options.ts";
import {
  CASES,
  distributionOf,
  MODEL,
  makeSetting,
  optionsOf,
  type Case,
  type Setting,
} from "../test/engine/text/sampling/llama-cases.ts";
import { outputOf } from "./llama-programs.ts";
import { programBeside } from "./llama-source.ts";

const DRAWS = 20_000;
const RECORDED = resolve(import.meta.dir, "../test/engine/text/sampling/llama-distributions.json");
/** Only drawn: XTC decides at random, and mirostat's cutoff depends on the draws before. */
const DRAWN: readonly Case[] = [
  { name: "xtc-sometimes", options: { xtc_probability: 0.3, xtc_threshold: 0.005 } },
  {
    name: "xtc-mixed",
    options: { xtc_probability: 0.5, xtc_threshold: 0.02, top_k: 30, min_p: 0.05, temperature: 0.7 },
  },
  { name: "mirostat-adapts", options: { mirostat: 1, mirostat_tau: 4 } },
  { name: "mirostat-2-adapts", options: { mirostat: 2, mirostat_tau: 4 } },
  { name: "mirostat-2-wide", options: { mirostat: 2, mirostat_tau: 6, mirostat_eta: 0.3, temperature: 1.5 } },
];

const { values: flags, positionals } = parseArgs({
  allowPositionals: true,
  options: { record: { type: "boolean", default: false }, only: { type: "string", default: "" } },
});
const [source] = positionals;
if (source === undefined) throw new Error("expected a folder with the source of llama.cpp");
const wanted = [...CASES, ...DRAWN].filter(({ name }) => name.startsWith(flags.only));
const setting = makeSetting();
const [left, drawn] = await llamas(resolve(source));
const broken = wanted.filter((each) => {
  const [p, ours] = [left.get(each.name)!, distributionOf(each, setting)];
  const isDrawn = DRAWN.includes(each);
  const apart = isDrawn ? 0 : Math.max(...[...p.keys(), ...ours.keys()].map((id) => difference(id, p, ours)));
  const test = chiSquared(drawsOf(each, setting), drawn.get(each.name)!);
  const isFine = apart < 1e-4 && test.z < 3.3;
  console.log(
    `${isFine ? "ok " : "BAD"} ${each.name.padEnd(18)} ${String(p.size).padStart(5)} left, ${apart.toExponential(1)} apart, χ² ${test.chi2.toFixed(1)} of ${test.freedom}`,
  );
  return !isFine;
});
if (flags.record) {
  const known = JSON.parse(await Bun.file(RECORDED).text()) as object;
  const recorded = CASES.filter((each) => wanted.includes(each)).map(({ name }) => {
    const all = left.get(name)!;
    const likely = [...all].filter(([, p]) => p >= 0.002).map(([id, p]) => [id, Number(p.toPrecision(6))]);
    return [name, { left: all.size, likely: Object.fromEntries(likely) }];
  });
  await Bun.write(RECORDED, `${JSON.stringify({ ...known, ...Object.fromEntries(recorded) })}\n`);
}
process.exitCode = broken.length > 0 ? 1 : 0;

function difference(id: number, a: ReadonlyMap<number, number>, b: ReadonlyMap<number, number>): number {
  return Math.abs((a.get(id) ?? 0) - (b.get(id) ?? 0));
}

/** Compares two samples of the same size; `z` is about normal if both have the same distribution. */
function chiSquared(
  a: ReadonlyMap<number, number>,
  b: ReadonlyMap<number, number>,
): { chi2: number; freedom: number; z: number } {
  let [chi2, freedom] = [0, -1];
  let [restA, restB] = [0, 0]; // rare tokens count together
  const add = (x: number, y: number): void => {
    if (x + y === 0) return;
    chi2 += (x - y) ** 2 / (x + y);
    freedom++;
  };
  for (const id of new Set([...a.keys(), ...b.keys()])) {
    const [x, y] = [a.get(id) ?? 0, b.get(id) ?? 0];
    if (x + y >= 20) add(x, y);
    else [restA, restB] = [restA + x, restB + y];
  }
  add(restA, restB);
  if (freedom < 1) return { chi2, freedom, z: chi2 };
  // Wilson and Hilferty's approximation
  const spread = 2 / (9 * freedom);
  return { chi2, freedom, z: ((chi2 / freedom) ** (1 / 3) - (1 - spread)) / Math.sqrt(spread) };
}

function drawsOf(each: Case, { logits, history, breakersOf }: Setting): Map<number, number> {
  const options = { ...optionsOf(each), seed: 5 };
  const parts = { vocabSize: logits.length, ctxLen: 512, breakers: breakersOf(options) };
  const sampler = makeSampler(options, parts);
  for (const id of history) sampler.accept(id);
  const counts = new Map<number, number>();
  for (let i = 0; i < DRAWS; i++) {
    const id = sampler.sample(logits.slice());
    counts.set(id, (counts.get(id) ?? 0) + 1);
  }
  return counts;
}

/** llama.cpp's distributions and counts, by case. */
async function llamas(llamaCpp: string): Promise<[Map<string, Map<number, number>>, Map<string, Map<number, number>>]> {
  const folder = await mkdtemp(join(tmpdir(), "hearth-samplers-"));
  try {
    await programBeside(llamaCpp, { name: "sampler-draws", folder, includes: ["include", "ggml/include"] });
    const lines = [
      `model ${MODEL}`,
      `logits ${[...setting.logits].join(" ")}`,
      `history ${setting.history.join(" ")}`,
      `draws ${DRAWS} 9`,
      ...wanted.map((each) => `case ${each.name} ${chainOf(optionsOf(each))}`),
    ];
    const env = { ...process.env, LD_LIBRARY_PATH: join(llamaCpp, "build/bin") };
    const stdin = new Blob([lines.join("\n")]);
    const child = Bun.spawn([join(folder, "sampler-draws")], { env, stdin, stdout: "pipe", stderr: "pipe" });
    const said = (await outputOf(child, "sampler-draws")).trim().split("\n");
    const tables = said.map((line) => {
      const [name = "", ...pairs] = line.split(" ");
      return [name, new Map(pairs.map((pair) => pair.split(":").map(Number) as [number, number]))] as const;
    });
    return [new Map(tables.filter((_, i) => i % 2 === 0)), new Map(tables.filter((_, i) => i % 2 === 1))];
  } finally {
    await rm(folder, { recursive: true });
  }
}

/** The chain that llama.cpp's server makes from the same options (`common_sampler_init`). */
function chainOf(options: SamplingOptions): string {
  const keep = options.min_keep;
  if (options.mirostat > 0) {
    const name = options.mirostat === 1 ? "mirostat" : "mirostat_2";
    return `temperature ${options.temperature} 0 1 ${name} ${options.mirostat_tau} ${options.mirostat_eta}`;
  }
  const words = (name: SamplerName): string => {
    switch (name) {
      case "penalties":
        return `penalties ${options.repeat_last_n} ${options.repeat_penalty} ${options.frequency_penalty} ${options.presence_penalty}`;
      case "dry": {
        const texts = options.dry_sequence_breakers.map((text) => Buffer.from(text).toString("hex"));
        const { dry_multiplier: multiplier, dry_base: base, dry_allowed_length: allowed } = options;
        return ["dry", multiplier, base, allowed, options.dry_penalty_last_n, texts.length, ...texts].join(" ");
      }
      case "top_n_sigma":
        return `top_n_sigma ${options.top_n_sigma}`;
      case "top_k":
        return `top_k ${options.top_k}`;
      case "tfs_z":
        return ""; // llama.cpp has it no more
      case "typ_p":
        return `typ_p ${options.typical_p} ${keep}`;
      case "top_p":
        return `top_p ${options.top_p} ${keep}`;
      case "min_p":
        return `min_p ${options.min_p} ${keep}`;
      case "xtc":
        return `xtc ${options.xtc_probability} ${options.xtc_threshold} ${keep}`;
      case "temperature":
        return `temperature ${options.temperature} ${options.dynatemp_range} ${options.dynatemp_exponent}`;
      default:
        return name satisfies never;
    }
  };
  return (options.samplers ?? DEFAULT_ORDER).map(words).filter(Boolean).join(" ");
}
