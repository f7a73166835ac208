/** The one-line subject of a delivery. */
import { expect, test } from "bun:test";
import { operator, external } from "../../../src/gateway/agent/boundary/tainted-text.ts";
import type { HookAction } from "../../../src/gateway/hooks/action.ts";
import { titleOf } from "../../../src/gateway/hooks/title.ts";

const actions = (text: string): HookAction[] => [
  { kind: "wake", text: [...operator("Build "), ...external(text)], mode: "now", isWrapped: true },
];

test.each([
  [
    { action: "opened", issue: { title: "It burns" }, repository: { full_name: "a/b" } },
    { "x-github-event": "issues" },
    "issues opened: It burns",
  ],
  [{ status: "firing", commonLabels: { alertname: "DiskFull" } }, {}, "firing: DiskFull"],
  [{ source: "imap", messages: [{ subject: "Rechnung 7", from: "a@b" }] }, {}, "Rechnung 7"],
  [{ type: "event_callback", event: { text: "hello", type: "message" } }, {}, "message: hello"],
  [{ subject: { not: "text" }, title: "" }, {}, "Build 7"],
  [null, {}, "Build 7"],
  [[1, 2], {}, "Build 7"],
] as const)("the title of a delivery with payload %j", (payload, headers, title) => {
  expect(titleOf({ actions: actions("7\nsecond line"), payload, headers })).toBe(title);
});

test("the title of a delivery is one line of bounded length", () => {
  const hostile = `a\n\u0000\u202eb${"🎩".repeat(500)}`;
  for (const payload of [{ subject: hostile }, { type: hostile, title: hostile }, { name: "x".repeat(1e6) }]) {
    const title = titleOf({ actions: [], payload })!;
    expect(title.length).toBeLessThanOrEqual(121);
    expect(title.isWellFormed()).toBe(true);
    expect(title).not.toMatch(/[\p{Cc}\u202a-\u202e]/u);
  }
  expect(titleOf({ actions: [], payload: { title: "a\u{e0069}\u{e006e}\u2060b" } })).toBe("ab");
  expect(titleOf({ actions: [], payload: JSON.parse('{"__proto__":{"title":"x"}}') })).toBeUndefined();
});
