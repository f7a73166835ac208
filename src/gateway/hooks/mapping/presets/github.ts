/** GitHub: repositories, organisations and apps. Events: docs.github.com, "Webhook events and payloads". */
import type { TaintedText } from "../../../agent/boundary/tainted-text.ts";
import { type Fields, fieldsOf } from "./fields.ts";
import { isQuiet } from "./github-quiet.ts";
import { eventSummary, type Kind, kindIn, lines, type Preset } from "./preset.ts";

const shortRef = (ref: string): string => ref.replace(/^refs\/(heads|tags)\//, "");
const numbered = (fields: Fields, path: string): string =>
  lines(`#${fields.text(`${path}.number`)} ${fields.text(`${path}.title`)}`);

const comment = (fields: Fields): string =>
  lines(["Comment", fields.long("comment.body")], fields.text("comment.html_url"));
const run = (path: string) => (fields: Fields) => {
  const each = fields.within(path);
  return lines(
    ["Name", each.text("name", "app.name")],
    ["Branch", each.text("head_branch", "check_suite.head_branch")],
    ["Commit", each.text("head_commit.message", "head_sha")],
    ["Status", each.text("status")],
    ["Conclusion", each.text("conclusion")],
    each.text("html_url"),
  );
};
const reference = (fields: Fields): string =>
  lines([fields.text("ref_type") || "ref", fields.text("ref")], ["Description", fields.text("description")]);

const KINDS: Readonly<Record<string, Kind>> = {
  push: {
    about: "Commits were pushed to a repository on GitHub.",
    tell: (fields) =>
      lines(
        ["Branch", shortRef(fields.text("ref"))],
        fields.has("forced") ? "This push rewrote history." : "",
        fields.has("deleted") ? "This push deleted the branch." : "",
        fields.list(
          "commits",
          (each) => `${each.text("id").slice(0, 12)} ${each.text("message")} (${each.text("author.name")})`,
        ),
        fields.text("compare"),
      ),
  },
  pull_request: {
    about: "Something happened to a pull request on GitHub.",
    tell: (fields) =>
      lines(
        ["Pull request", numbered(fields, "pull_request")],
        ["State", fields.has("pull_request.merged") ? "merged" : fields.text("pull_request.state")],
        ["From", fields.text("pull_request.head.label", "pull_request.head.ref")],
        ["Into", fields.text("pull_request.base.ref")],
        ["Label", fields.text("label.name")],
        ["Reviewer", fields.text("requested_reviewer.login")],
        fields.long("pull_request.body"),
        fields.text("pull_request.html_url"),
      ),
  },
  pull_request_review: {
    about: "A pull request on GitHub was reviewed.",
    tell: (fields) =>
      lines(
        ["Pull request", numbered(fields, "pull_request")],
        ["Verdict", fields.text("review.state")],
        fields.long("review.body"),
        fields.text("review.html_url"),
      ),
  },
  pull_request_review_comment: {
    about: "Someone commented on the code of a pull request on GitHub.",
    tell: (fields) =>
      lines(["Pull request", numbered(fields, "pull_request")], ["File", fields.text("comment.path")], comment(fields)),
  },
  issues: {
    about: "Something happened to an issue on GitHub.",
    tell: (fields) =>
      lines(
        ["Issue", numbered(fields, "issue")],
        ["State", fields.text("issue.state")],
        ["Label", fields.text("label.name")],
        ["Assignee", fields.text("assignee.login")],
        fields.long("issue.body"),
        fields.text("issue.html_url"),
      ),
  },
  issue_comment: {
    about: "Someone commented on GitHub.",
    tell: (fields) =>
      lines([fields.has("issue.pull_request") ? "Pull request" : "Issue", numbered(fields, "issue")], comment(fields)),
  },
  commit_comment: { about: "Someone commented on a commit on GitHub.", tell: comment },
  discussion: {
    about: "Something happened to a discussion on GitHub.",
    tell: (fields) =>
      lines(
        ["Discussion", numbered(fields, "discussion")],
        fields.long("discussion.body"),
        fields.text("discussion.html_url"),
      ),
  },
  discussion_comment: {
    about: "Someone commented on a discussion on GitHub.",
    tell: (fields) => lines(["Discussion", numbered(fields, "discussion")], comment(fields)),
  },
  release: {
    about: "Something happened to a release on GitHub.",
    tell: (fields) =>
      lines(
        ["Release", fields.text("release.name", "release.tag_name")],
        ["Tag", fields.text("release.tag_name")],
        fields.long("release.body"),
        fields.text("release.html_url"),
      ),
  },
  workflow_run: { about: "A workflow ran on GitHub.", tell: run("workflow_run") },
  workflow_job: { about: "A job of a workflow ran on GitHub.", tell: run("workflow_job") },
  check_run: { about: "A check ran on GitHub.", tell: run("check_run") },
  check_suite: { about: "Checks ran on GitHub.", tell: run("check_suite") },
  deployment_status: {
    about: "A deployment changed its state on GitHub.",
    tell: (fields) =>
      lines(
        ["Environment", fields.text("deployment_status.environment", "deployment.environment")],
        ["State", fields.text("deployment_status.state")],
        ["Ref", fields.text("deployment.ref")],
        fields.text("deployment_status.description"),
        fields.text("deployment_status.target_url"),
      ),
  },
  dependabot_alert: {
    about: "GitHub reports a vulnerable dependency.",
    tell: (fields) =>
      lines(
        ["Package", fields.text("alert.dependency.package.name")],
        ["Severity", fields.text("alert.security_advisory.severity")],
        fields.text("alert.security_advisory.summary"),
        fields.text("alert.html_url"),
      ),
  },
  secret_scanning_alert: {
    about: "GitHub found a secret in a repository.",
    tell: (fields) =>
      lines(
        ["Kind", fields.text("alert.secret_type_display_name", "alert.secret_type")],
        fields.text("alert.html_url"),
      ),
  },
  status: {
    about: "A check of a commit changed its state on GitHub.",
    tell: (fields) =>
      lines(
        ["Name", fields.text("context")],
        ["State", fields.text("state")],
        ["Commit", fields.text("commit.commit.message", "sha")],
        fields.text("description"),
        fields.text("target_url"),
      ),
  },
  create: { about: "A branch or tag was made on GitHub.", tell: reference },
  delete: { about: "A branch or tag was deleted on GitHub.", tell: reference },
  fork: {
    about: "A repository was forked on GitHub.",
    tell: (fields) => lines(["Fork", fields.text("forkee.full_name")]),
  },
  star: { about: "A repository's star was given or taken on GitHub.", tell: () => "" },
};

function describe(kind: string | undefined, payload: unknown): TaintedText {
  const fields = fieldsOf(payload);
  const known = kindIn(KINDS, kind);
  const head = lines(
    ["Event", known ? "" : (kind ?? "")],
    ["Repository", fields.text("repository.full_name", "organization.login")],
    ["By", fields.text("sender.login")],
    ["Action", fields.text("action")],
  );
  return eventSummary(known, { sender: "GitHub", head, fields, payload });
}

export const github: Preset = {
  // GitHub sends bodies of up to 25 MB, and sends each only once
  mapping: { match: { path: "github" }, name: "GitHub", handshake: "github", maxBodyBytes: 25 * 1024 * 1024 },
  scheme: "github",
  deliveryIdAt: ["headers.x-github-delivery"],
  leavesOut: ({ headers, payload }) => isQuiet(headers["x-github-event"] ?? "", fieldsOf(payload)),
  describe: ({ headers, payload }) => {
    const kind = headers["x-github-event"];
    return kind === "ping" ? undefined : describe(kind, payload);
  },
};
