import { describe, expect, test } from "bun:test";
import { deliveryIdOf } from "../../../../../src/gateway/hooks/mapping/index.ts";
import { makeRequest } from "../view.ts";
import { mappingOf, promptOf } from "./run.ts";

describe("gitlab", () => {
  const project = { path_with_namespace: "sea/lighthouse" };
  const user = { name: "Ada", username: "ada" };
  test.each<[unknown, readonly string[]]>([
    [
      {
        object_kind: "push",
        ref: "refs/heads/main",
        user_name: "Ada",
        total_commits_count: 1,
        project,
        commits: [{ id: "da1560886d4f094c", title: "Fix lamp", author: { name: "Ada" } }],
      },
      ["Commits were pushed to a project on GitLab.", "Ref: main", "- da1560886d4f Fix lamp (Ada)", "By: Ada"],
    ],
    [
      {
        object_kind: "merge_request",
        user,
        project,
        object_attributes: {
          iid: 4,
          title: "Faster",
          action: "open",
          state: "opened",
          source_branch: "f",
          target_branch: "main",
          description: "d",
          url: "https://g/4",
        },
      },
      ["Merge request: !4 Faster", "From: f", "Into: main", "Action: open"],
    ],
    [
      {
        object_kind: "pipeline",
        project,
        object_attributes: { ref: "main", status: "failed" },
        builds: [{ stage: "test", name: "unit", status: "failed" }],
      },
      ["A pipeline ran", "Status: failed", "- test unit: failed"],
    ],
    [
      {
        object_kind: "note",
        user,
        project,
        object_attributes: { noteable_type: "Issue", note: "Yes" },
        issue: { title: "Slow" },
      },
      ["On: Issue", "Title: Slow", "Comment: Yes"],
    ],
    [{ object_kind: "feature_flag", project }, ["Event: feature_flag", "Project: sea/lighthouse"]],
  ])("describes event %#", async (payload, parts) => {
    const text = await promptOf("gitlab", payload);
    for (const each of parts) expect(text).toContain(each);
  });
  test("takes the delivery id from idempotency-key, else from the event's UUID", () => {
    const idOf = (headers: Record<string, string>) => deliveryIdOf(mappingOf("gitlab"), makeRequest({ headers }));
    expect(idOf({ "idempotency-key": "k", "x-gitlab-event-uuid": "u" })).toBe("k");
    expect(idOf({ "x-gitlab-event-uuid": "u" })).toBe("u");
  });
});
