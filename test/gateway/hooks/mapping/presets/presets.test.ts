import { describe, expect, test } from "bun:test";
import fc from "fast-check";
import { AppError } from "../../../../../src/base/errors.ts";
import { plain } from "../../../../../src/gateway/agent/boundary/tainted-text.ts";
import { PRESETS } from "../../../../../src/gateway/hooks/config.ts";
import { presets } from "../../../../../src/gateway/hooks/mapping/presets/index.ts";
import { anyCharacter } from "../../../../characters.ts";
import { makeView } from "../view.ts";
import { mappingOf, promptOf } from "./run.ts";

/** The name of its runs. */
const NAMES: Readonly<Record<(typeof PRESETS)[number], string>> = {
  alertmanager: "Alertmanager",
  generic: "Webhook",
  github: "GitHub",
  gitlab: "GitLab",
  mail: "Mail",
  sentry: "Sentry",
  slack: "Slack",
  stripe: "Stripe",
};

test.each(PRESETS.map((name) => [name]))("the preset %s has its own path and name", (name) => {
  const mapping = mappingOf(name);
  expect(mapping.plan).toMatchObject({ ok: true });
  expect(mapping.config.match.path).toBe(name);
  expect(mapping.config.name).toBe(NAMES[name]);
});

test.each([
  ["github", 25 * 1024 * 1024],
  ["gitlab", 25 * 1024 * 1024],
  ["sentry", 2 * 1024 * 1024],
] as const)("the preset %s allows the largest body that its sender sends", (name, bytes) => {
  expect(mappingOf(name).config.maxBodyBytes).toBe(bytes);
});

describe("generic", () => {
  test.each<[unknown, string]>([
    [{ a: { b: 1 } }, '"b": 1'],
    ["plain text", "plain text"],
    [[1, 2], "[\n  1,\n  2\n]"],
  ])("shows %j unchanged", async (payload, wanted) => expect(await promptOf("generic", payload)).toContain(wanted));
});

test("a preset marks no text of a payload as the operator's, and throws only errors of the product", () => {
  const MARK = "zq9";
  const value = fc.jsonValue({ maxDepth: 4, stringUnit: anyCharacter });
  const kind = fc.constantFrom(
    "push",
    "issues",
    "pull_request",
    "issue",
    "error",
    "release",
    MARK,
    "__proto__",
    "constructor",
  );
  const keyed = fc.dictionary(
    fc.constantFrom(
      "object_kind",
      "type",
      "event",
      "data",
      "object",
      "commits",
      "alerts",
      "issue",
      "labels",
      "action",
      "from",
      "id",
      "__proto__",
    ),
    fc.oneof(value, kind, fc.constant({ text: MARK, title: MARK, object: { object: MARK } })),
  );
  fc.assert(
    fc.property(fc.constantFrom(...PRESETS), fc.oneof(value, keyed), kind, (name, payload, event) => {
      const headers = { "x-github-event": event, "sentry-hook-resource": event, "x-gitlab-event": event };
      try {
        const tainted = presets[name].describe({ ...makeView({ payload, headers }), item: payload, index: 0 });
        const ours = (tainted ?? []).filter(({ from }) => from === "operator").map(({ text }) => text);
        expect(ours.join("")).not.toContain(MARK);
        expect(plain(tainted ?? []).length).toBeLessThan(100_000);
      } catch (error) {
        expect(error).toBeInstanceOf(AppError);
      }
    }),
    { numRuns: 3000 },
  );
});
