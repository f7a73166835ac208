/** GitLab: projects and groups. Events: docs.gitlab.com, "Webhook events". */
import { type Fields, fieldsOf } from "./fields.ts";
import { isQuiet } from "./gitlab-quiet.ts";
import { eventSummary, type Kind, kindIn, lines, type Preset } from "./preset.ts";

const shortRef = (ref: string): string => ref.replace(/^refs\/(heads|tags)\//, "");
const state = (fields: Fields): string =>
  lines(
    ["Action", fields.text("object_attributes.action")],
    ["State", fields.text("object_attributes.state")],
    fields.long("object_attributes.description"),
    fields.text("object_attributes.url"),
  );

const push = (what: string): Kind => ({
  about: `${what} pushed to a project on GitLab.`,
  tell: (fields) =>
    lines(
      ["Ref", shortRef(fields.text("ref"))],
      ["Commits", fields.text("total_commits_count")],
      fields.list(
        "commits",
        (each) => `${each.text("id").slice(0, 12)} ${each.text("title", "message")} (${each.text("author.name")})`,
      ),
    ),
});

const issue: Kind = {
  about: "Something happened to an issue on GitLab.",
  tell: (fields) =>
    lines(
      ["Issue", `#${fields.text("object_attributes.iid")} ${fields.text("object_attributes.title")}`],
      state(fields),
    ),
};

const KINDS: Readonly<Record<string, Kind>> = {
  push: push("Commits were"),
  tag_push: push("A tag was"),
  merge_request: {
    about: "Something happened to a merge request on GitLab.",
    tell: (fields) =>
      lines(
        ["Merge request", `!${fields.text("object_attributes.iid")} ${fields.text("object_attributes.title")}`],
        ["From", fields.text("object_attributes.source_branch")],
        ["Into", fields.text("object_attributes.target_branch")],
        state(fields),
      ),
  },
  issue,
  work_item: issue,
  note: {
    about: "Someone commented on GitLab.",
    tell: (fields) =>
      lines(
        ["On", fields.text("object_attributes.noteable_type")],
        ["Title", fields.text("merge_request.title", "issue.title", "commit.title", "snippet.title")],
        ["Comment", fields.long("object_attributes.note")],
        fields.text("object_attributes.url"),
      ),
  },
  pipeline: {
    about: "A pipeline ran on GitLab.",
    tell: (fields) =>
      lines(
        ["Branch", fields.text("object_attributes.ref")],
        ["Status", fields.text("object_attributes.detailed_status", "object_attributes.status")],
        ["Commit", fields.text("commit.title", "commit.message")],
        fields.list("builds", (each) => `${each.text("stage")} ${each.text("name")}: ${each.text("status")}`),
        fields.text("object_attributes.url"),
      ),
  },
  build: {
    about: "A job ran on GitLab.",
    tell: (fields) =>
      lines(
        ["Job", fields.text("build_name")],
        ["Stage", fields.text("build_stage")],
        ["Status", fields.text("build_status")],
        ["Failure", fields.text("build_failure_reason")],
        ["Ref", fields.text("ref")],
      ),
  },
  deployment: {
    about: "A deployment changed its state on GitLab.",
    tell: (fields) =>
      lines(
        ["Environment", fields.text("environment")],
        ["Status", fields.text("status")],
        ["Commit", fields.text("commit_title")],
        fields.text("deployable_url"),
      ),
  },
  release: {
    about: "Something happened to a release on GitLab.",
    tell: (fields) =>
      lines(
        ["Action", fields.text("action")],
        ["Release", fields.text("name")],
        ["Tag", fields.text("tag")],
        fields.long("description"),
        fields.text("url"),
      ),
  },
};

export const gitlab: Preset = {
  // GitLab sends bodies of up to 25 MB, and disables an address that refuses four in a row
  mapping: { match: { path: "gitlab" }, name: "GitLab", maxBodyBytes: 25 * 1024 * 1024 },
  scheme: "gitlab",
  deliveryIdAt: ["headers.idempotency-key", "headers.x-gitlab-event-uuid"],
  leavesOut: ({ payload }) => isQuiet(fieldsOf(payload)),
  describe: ({ headers, payload }) => {
    const fields = fieldsOf(payload);
    const kind = fields.text("object_kind");
    const known = kindIn(KINDS, kind);
    const head = lines(
      ["Event", known ? "" : kind || (headers["x-gitlab-event"] ?? "")],
      ["Project", fields.text("project.path_with_namespace", "repository.name")],
      ["By", fields.text("user.name", "user_name")],
    );
    return eventSummary(known, { sender: "GitLab", head, fields, payload });
  },
};
