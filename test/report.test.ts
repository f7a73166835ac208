/** bench/REPORT.md and its records. */
import { expect, test } from "bun:test";
import { join } from "node:path";
import { inOrder, reportOf } from "../bench/report/markdown.ts";
import { merged, readRecords, type BenchRecord, type Figure } from "../bench/report/record.ts";

const BENCH = join(import.meta.dir, "../bench");

test("the report equals the one made from the records", async () => {
  const again = "run `bun bench/report.ts`";
  expect(await Bun.file(join(BENCH, "REPORT.md")).text(), again).toBe(reportOf(inOrder(readRecords())));
});

test("a record that the order does not list comes last", () => {
  const named = (title: string): BenchRecord => ({ ...RECORD, title });
  const records = new Map(["zebra", "streams", "ant", "files"].map((name) => [name, named(name)]));
  expect(inOrder(records).map(({ title }) => title)).toEqual(["files", "streams", "ant", "zebra"]);
});

test("a goal is met or missed by the median of the ratio or the value", () => {
  const peer = { name: "llama-bench", rounds: [10, 20, 90] };
  const rows = tableOf([
    { ...FIGURE, ours: [10, 42, 50], peer, goal: { of: "ratio", atLeast: 2.1 } },
    { ...FIGURE, ours: [10, 41, 50], peer, goal: { of: "ratio", atLeast: 2.1 } },
    { ...FIGURE, ours: [0.1, 0.3, 0.9], goal: { of: "value", atMost: 0.3 } },
    { ...FIGURE, ours: [0.31], goal: { of: "value", atMost: 0.3 } },
    { ...FIGURE, ours: [4], bandwidthShare: 0.874 },
  ]);
  expect(rows).toEqual([
    ["Q4", "decode, tokens/s", "42.0 (10.0–50.0)", "20.0 (10.0–90.0)", "llama-bench", "2.10", "", "≥ 2.1: met"],
    ["Q4", "decode, tokens/s", "41.0 (10.0–50.0)", "20.0 (10.0–90.0)", "llama-bench", "2.05", "", "≥ 2.1: missed"],
    ["Q4", "decode, tokens/s", "0.30 (0.10–0.90)", "", "", "", "", "≤ 0.3: met"],
    ["Q4", "decode, tokens/s", "0.31", "", "", "", "", "≤ 0.3: missed"],
    ["Q4", "decode, tokens/s", "4.00", "", "", "", "87 %", ""],
  ]);
});

test("a goal is compared with the digits that it has, and a tiny one with all", () => {
  const peer = { name: "llama.cpp", rounds: [100] };
  const rows = tableOf([
    { ...FIGURE, ours: [100.6], peer, goal: { of: "ratio", atMost: 1.005 } },
    { ...FIGURE, ours: [100.4], peer, goal: { of: "ratio", atMost: 1.005 } },
    { ...FIGURE, ours: [0.99984], goal: { of: "value", atLeast: 0.9999 } },
    { ...FIGURE, ours: [0.0000011], goal: { of: "value", atMost: 1e-6 } },
  ]);
  expect(rows.map((cells) => [cells[2], cells[5], cells[6]])).toEqual([
    ["101", "1.006", "≤ 1.005: missed"],
    ["100", "1.004", "≤ 1.005: met"],
    ["0.9998", "", "≥ 0.9999: missed"],
    ["1.1e-6", "", "≤ 0.000001: missed"],
  ]);
});

test("parts that ran again replace their figures, and other parts keep their commit", () => {
  const [kept, stale, fresh] = [
    { ...FIGURE, part: "a", ours: [1] },
    { ...FIGURE, part: "b", ours: [2] },
    { ...FIGURE, part: "b", ours: [3] },
  ];
  const added = { ...FIGURE, part: "c", ours: [4] };
  const all = merged({ ...RECORD, figures: [kept, stale, { ...stale, what: "gone" }] }, [added, fresh]);
  expect(all).toEqual([{ ...kept, commit: "abc" }, fresh, added]);
});

test("columns without a figure are left out", () => {
  expect(tableOf([{ ...FIGURE, ours: [1, 2] }])).toEqual([["Q4", "decode, tokens/s", "1.50 (1.00–2.00)"]]);
});

const FIGURE = { what: "Q4", measure: "decode", unit: "tokens/s" };
const RECORD: BenchRecord = {
  title: "Files",
  command: "bun bench/x.ts",
  commit: "abc",
  date: "2026-01-01",
  machine: "a CPU",
  load: [0, 1],
  figures: [],
};

/** The cells below the heading. */
function tableOf(figures: readonly Figure[]): string[][] {
  const lines = reportOf([{ ...RECORD, figures }])
    .split("\n")
    .filter((line) => line.startsWith("|"));
  return lines.slice(2).map((line) =>
    line
      .slice(1, -1)
      .split("|")
      .map((cell) => cell.trim()),
  );
}
