import { expect, test } from "bun:test";
import { plain } from "../../../../../src/gateway/agent/boundary/tainted-text.ts";
import { replyProblem, summaryOf } from "../../../../../src/gateway/hooks/queue/worker/summary.ts";

const parts = { outcome: "ok", answer: "done", reason: null } as const;

test.each([
  ["Hook <name>: <summary>", "Email", parts, "Hook Email: done"],
  ["the default name is not repeated", "Hook", parts, "Hook: done"],
  ["the answer is trimmed", "Email", { ...parts, answer: "\n done \n" }, "Hook Email: done"],
  ["an empty answer is replaced by the outcome", "Email", { ...parts, answer: "  " }, "Hook Email: ok"],
  [
    "an error is named",
    "CI",
    { outcome: "error", answer: null, reason: "no such model" },
    "Hook CI (error): no such model",
  ],
  ["a dead run is an error", "CI", { outcome: "dead", answer: null, reason: "busy" }, "Hook CI (error): busy"],
  ["a timeout is named", "CI", { outcome: "timeout", answer: null, reason: "too long" }, "Hook CI (timeout): too long"],
  [
    "a cancellation is named",
    "CI",
    { outcome: "cancelled", answer: null, reason: "stopped" },
    "Hook CI (cancelled): stopped",
  ],
] as const)("summary: %s", (_, name, given, text) => {
  expect(plain(summaryOf({ name }, given))).toBe(text);
});

test("summary: has at most two thousand characters and an ellipsis, and cuts between characters", () => {
  const cut = plain(summaryOf({ name: "E" }, { ...parts, answer: "x".repeat(5000) }));
  expect(cut).toBe(`Hook E: ${"x".repeat(1999)}…`);
  expect(plain(summaryOf({ name: "E" }, { ...parts, answer: "x".repeat(2000) }))).toBe(`Hook E: ${"x".repeat(2000)}`);
  const smileys = plain(summaryOf({ name: "E" }, { ...parts, answer: "😀".repeat(1500) }));
  expect(smileys.isWellFormed()).toBe(true);
  expect(smileys.endsWith("😀…")).toBe(true);
});

test("summary: is external text, including the sender's name", () => {
  for (const tainted of [summaryOf({ name: "x" }, parts), replyProblem({ name: "x" }, { kind: "failed" })]) {
    expect(tainted.map((part) => part.from)).toEqual(["external"]);
  }
});
