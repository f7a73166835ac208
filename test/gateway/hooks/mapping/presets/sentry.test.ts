import { describe, expect, test } from "bun:test";
import { run, promptOf } from "./run.ts";

describe("sentry", () => {
  test.each<[string, unknown, readonly string[]]>([
    [
      "issue",
      {
        action: "created",
        actor: { name: "Sentry" },
        data: {
          issue: {
            shortId: "LAMP-1",
            title: "TypeError: lamp",
            project: { name: "lamp" },
            level: "error",
            count: "3",
            web_url: "https://s/1",
          },
        },
      },
      ["Issue: LAMP-1 TypeError: lamp", "Level: error", "Times seen: 3", "Action: created"],
    ],
    [
      "event_alert",
      {
        action: "triggered",
        data: { triggered_rule: "Many", event: { title: "Boom", culprit: "lamp.ts in turn", level: "fatal" } },
      },
      ["An alert rule", "Title: Boom", "Where: lamp.ts in turn", "Rule: Many"],
    ],
    [
      "metric_alert",
      { action: "critical", data: { description_title: "Critical: slow", description_text: "p95 over 2 s" } },
      ["Critical: slow", "p95 over 2 s"],
    ],
    ["seer", { data: { x: "y" } }, ["Event: seer", '"x": "y"']],
  ])("describes %s", async (kind, payload, parts) => {
    const text = await promptOf("sentry", payload, { "sentry-hook-resource": kind });
    for (const each of parts) expect(text).toContain(each);
  });
  test("runs nothing for an installation", async () =>
    expect(await run("sentry", {}, { "sentry-hook-resource": "installation" })).toEqual({ kind: "nothing" }));
});
