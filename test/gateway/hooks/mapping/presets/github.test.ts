import { describe, expect, test } from "bun:test";
import { deliveryIdOf } from "../../../../../src/gateway/hooks/mapping/index.ts";
import { makeRequest } from "../view.ts";
import * as github from "./github-payloads.ts";
import { mappingOf, run, promptOf } from "./run.ts";

describe("github", () => {
  const event = (kind: string) => ({ "x-github-event": kind, "x-github-delivery": "72d3162e-cc78-11e3" });
  test.each<[string, unknown, readonly string[]]>([
    [
      "push",
      github.push,
      [
        "Commits were pushed",
        "Repository: octo/lighthouse",
        "By: ada",
        "Branch: main",
        "- cccccccccccc Commit 0 Longer text (Ada)",
        "- and 5 more",
      ],
    ],
    [
      "pull_request",
      github.pullRequest,
      [
        "Pull request: #17 Turn the lamp faster",
        "Action: opened",
        "From: ada:faster",
        "Into: main",
        "It was too slow.",
      ],
    ],
    ["pull_request", github.merged, ["Action: closed", "State: merged"]],
    ["pull_request_review", github.review, ["was reviewed", "Verdict: changes_requested", "Use a gear."]],
    ["issues", github.issueOpened, ["Issue: #3 The lamp is slow", "State: open", "Ships wait."]],
    ["issue_comment", github.comment, ["Pull request: #3 The lamp is slow", "Comment: I agree"]],
    ["release", github.release, ["Release: Bright", "Tag: v1.2.0", "- brighter"]],
    ["workflow_run", github.workflow, ["A workflow ran", "Name: CI", "Branch: main", "Conclusion: failure"]],
    ["sponsorship", { action: "created", extra: { deep: "value" } }, ["Event: sponsorship", '"deep": "value"']],
  ])("describes %s in words", async (kind, payload, parts) => {
    const text = await promptOf("github", payload, event(kind));
    for (const each of parts) expect(text).toContain(each);
    expect(text).not.toContain("undefined");
  });

  test("runs nothing for a ping", async () =>
    expect(await run("github", github.ping, event("ping"))).toEqual({ kind: "nothing" }));
  test("takes the delivery id from x-github-delivery", () =>
    expect(deliveryIdOf(mappingOf("github"), makeRequest({ headers: event("push") }))).toBe("72d3162e-cc78-11e3"));
  test("passes on an event named like a prototype's property as unknown", async () =>
    expect(await promptOf("github", {}, event("constructor"))).toContain("Event: constructor"));
});
