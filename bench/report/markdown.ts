/** Renders the records as REPORT.md. */
import type { BenchRecord, Figure, Goal } from "./record.ts";

export const median = (rounds: readonly number[]): number => {
  const sorted = rounds.toSorted((a, b) => a - b);
  const middle = sorted.length >> 1;
  return sorted.length % 2 === 1 ? sorted[middle]! : (sorted[middle - 1]! + sorted[middle]!) / 2;
};

/** Our median relative to the peer's; undefined without a peer. */
export function ratioOf({ ours, peer }: Figure): number | undefined {
  return peer && median(ours) / median(peer.rounds);
}

/** By file name; other records come after these. */
const ORDER = [
  "files",
  "contexts",
  "streams",
  "files-avx2",
  "streams-avx2",
  "embeddings",
  "busy",
  "library",
  "first-token-1.2b",
  "first-token-8b",
];

/** @returns the records in the order of the report */
export function inOrder(records: ReadonlyMap<string, BenchRecord>): BenchRecord[] {
  const place = (name: string): number => (ORDER.includes(name) ? ORDER.indexOf(name) : ORDER.length);
  return [...records].toSorted(([a], [b]) => place(a) - place(b) || a.localeCompare(b)).map(([, record]) => record);
}

const INTRODUCTION = [
  "Made by `bun bench/report.ts` from `bench/records/`; not edited by hand. Each record is one run of one benchmark " +
    "with `--record`: Hearth and its peer take turns on the same files and cores, each in a separate process. " +
    "Figures are medians of the rounds, with the lowest and the highest; the peer is llama.cpp's own program of that " +
    "name, or that of ik_llama.cpp, its fork, built from source for the CPU it runs on.",
  "The models have the shapes of real ones and random weights (`bun bench/make-model.ts`). The share is that of the " +
    "bytes a second that all threads together read plainly of memory in pages of 4 KB; files whose pages are larger " +
    "are read faster. The load is that of the last minute before a benchmark began; one that follows another begins " +
    "at 2.",
  "A ratio that a sample decides has its standard error after ±; one that misses its goal by less than two errors is " +
    "undecided.",
];

export function reportOf(records: readonly BenchRecord[]): string {
  return [
    "# Benchmarks",
    "",
    ...INTRODUCTION.flatMap((paragraph) => [...wrapped(paragraph), ""]),
    "![Hearth beside llama.cpp](report.svg)",
    "",
    ...records.flatMap(section),
  ].join("\n");
}

/** Breaks a paragraph like the formatter: at spaces outside of code, into lines of at most 100 columns. */
function wrapped(paragraph: string): string[] {
  const lines: string[] = [];
  for (const word of paragraph.match(/(?:`[^`]*`|[^ `])+/g) ?? []) {
    const last = lines.at(-1);
    if (last !== undefined && last.length + 1 + word.length <= 100) lines[lines.length - 1] = `${last} ${word}`;
    else lines.push(word);
  }
  return lines;
}

function section(record: BenchRecord): string[] {
  const { title, command, commit, date, machine, bandwidth, load, figures } = record;
  const read = bandwidth ? `, read at ${(bandwidth / 1e9).toFixed(0)} GB/s` : "";
  return [
    `## ${title}`,
    "",
    `\`${command}\``,
    "",
    ...wrapped(`Commit ${commit}, ${date}, load ${load[0].toFixed(1)}; ${machine}${read}.`),
    "",
    ...table(figures),
    "",
  ];
}

/** Smaller values show as powers of ten. */
const TINY = 0.005;

interface Column {
  readonly title: string;
  readonly isNumber?: boolean;
  of(figure: Figure): string;
}

const COLUMNS: readonly Column[] = [
  { title: "part", of: ({ part }) => part ?? "" },
  { title: "what", of: ({ what }) => what },
  { title: "measure", of: ({ measure, unit }) => (unit ? `${measure}, ${unit}` : measure) },
  { title: "Hearth", isNumber: true, of: ({ ours, goal }) => spread(ours, goal?.of === "value" ? decimals(goal) : 0) },
  { title: "peer", isNumber: true, of: ({ peer }) => (peer ? spread(peer.rounds) : "") },
  { title: "by", of: ({ peer }) => peer?.name ?? "" },
  { title: "ratio", isNumber: true, of: ratioCell },
  {
    title: "share",
    isNumber: true,
    of: ({ bandwidthShare }) => (bandwidthShare ? `${Math.round(bandwidthShare * 100)} %` : ""),
  },
  { title: "goal", of: goalOf },
  { title: "commit", of: ({ commit }) => commit ?? "" },
];

/** Empty columns are omitted. */
function table(figures: readonly Figure[]): string[] {
  const columns = COLUMNS.filter(({ of }) => figures.some((figure) => of(figure) !== ""));
  const rows = [columns.map(({ title }) => title), ...figures.map((figure) => columns.map(({ of }) => of(figure)))];
  const widths = columns.map((_, i) => Math.max(3, ...rows.map((row) => row[i]!.length)));
  const line = (cells: readonly string[]): string =>
    `| ${cells.map((cell, i) => (columns[i]!.isNumber ? cell.padStart(widths[i]!) : cell.padEnd(widths[i]!))).join(" | ")} |`;
  const rule = columns.map(({ isNumber }, i) => (isNumber ? `${"-".repeat(widths[i]! - 1)}:` : "-".repeat(widths[i]!)));
  return [line(rows[0]!), line(rule), ...rows.slice(1).map(line)];
}

/** @param least decimals that the figure's goal has */
function spread(rounds: readonly number[], least = 0): string {
  const middle = median(rounds);
  const usual = middle < 10 ? 2 : middle < 100 ? 1 : 0;
  const digits = (value: number): string =>
    value !== 0 && Math.abs(value) < TINY ? value.toExponential(1) : value.toFixed(Math.max(usual, least));
  if (rounds.length === 1) return digits(rounds[0]!);
  return `${digits(middle)} (${digits(Math.min(...rounds))}–${digits(Math.max(...rounds))})`;
}

function ratioCell(figure: Figure): string {
  const ratio = ratioOf(figure)?.toFixed(ratioDecimals(figure)) ?? "";
  return figure.error === undefined ? ratio : `${ratio} ± ${figure.error.toFixed(ratioDecimals(figure))}`;
}

/** A ratio that misses its goal by less than two standard errors is undecided. */
function goalOf(figure: Figure): string {
  const { goal, error = 0 } = figure;
  if (!goal) return "";
  const value = goal.of === "ratio" ? ratioOf(figure)! : median(figure.ours);
  const sign = goal.atLeast === undefined ? "≤" : "≥";
  const toward = goal.atLeast === undefined ? -2 * error : 2 * error;
  const judged = isMet(goal, value) ? "met" : isMet(goal, value + toward) ? "undecided" : "missed";
  return `${sign} ${goal.atLeast ?? goal.atMost}: ${judged}`;
}

/** Compares the displayed value: 0.996 is no more than 1, and 1.0052 no more than 1.005. Tiny goals are exact. */
function isMet(goal: Goal, value: number): boolean {
  const bound = goal.atLeast ?? goal.atMost ?? 0;
  const shown = bound !== 0 && bound < TINY ? value : Number(value.toFixed(Math.max(2, decimals(goal))));
  return shown >= (goal.atLeast ?? -Infinity) && shown <= (goal.atMost ?? Infinity);
}

const ratioDecimals = ({ goal }: Figure): number => Math.max(2, goal?.of === "ratio" ? decimals(goal) : 0);

/** Digits after the decimal point of a goal. */
const decimals = ({ atLeast, atMost }: Goal): number => `${atLeast ?? atMost}`.split(".")[1]?.length ?? 0;
