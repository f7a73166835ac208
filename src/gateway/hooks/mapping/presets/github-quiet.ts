/** Events of GitHub that need no action. docs/senders.md has the same table. */
import type { Fields } from "./fields.ts";

/** Housekeeping of the hook and of the app, and events that repeat others. */
const KINDS: readonly string[] = [
  "ping",
  "watch", // also comes as `star`
  "label",
  "installation",
  "installation_repositories",
  "installation_target",
  "github_app_authorization",
  "merge_group",
  "pull_request_review_thread",
  "deployment", // `deployment_status` reports the result
  "sub_issues",
  "issue_dependencies",
  "projects_v2_item",
  "secret_scanning_scan",
  "secret_scanning_alert_location", // one for each place; `secret_scanning_alert` reports them once
];

/** Texts of people, and their changes; `deleted` for a repository, say, is not among these. */
const CONVERSATIONS: readonly string[] = [
  "issues",
  "issue_comment",
  "commit_comment",
  "pull_request",
  "pull_request_review",
  "pull_request_review_comment",
  "discussion",
  "discussion_comment",
];
const COMMENTS: readonly string[] = CONVERSATIONS.filter((kind) => /comment|review/.test(kind));

const QUIET_ACTIONS = new Set(
  (
    "edited deleted labeled unlabeled typed untyped milestoned demilestoned pinned unpinned locked unlocked unassigned " +
    "synchronize review_request_removed auto_merge_enabled auto_merge_disabled enqueued dequeued category_changed " +
    "field_added field_removed sub_issue_added sub_issue_removed"
  ).split(" "),
);

/** Runs of programs: the path of their state, and the states worth a turn. */
const CHECKS: Readonly<Record<string, { readonly at: string; readonly reported: readonly string[] }>> = {
  workflow_run: {
    at: "workflow_run.conclusion",
    reported: ["success", "failure", "timed_out", "action_required", "startup_failure"],
  },
  workflow_job: { at: "workflow_job.conclusion", reported: ["failure", "timed_out", "action_required"] },
  check_run: { at: "check_run.conclusion", reported: ["failure", "timed_out", "action_required"] },
  check_suite: {
    at: "check_suite.conclusion",
    reported: ["failure", "timed_out", "action_required", "startup_failure"],
  },
  deployment_status: { at: "deployment_status.state", reported: ["success", "failure", "error"] },
  status: { at: "state", reported: ["failure", "error"] },
  page_build: { at: "build.status", reported: ["errored"] },
};
/** A request to repeat a check: its conclusion is still the previous one. */
const ASKS_ANEW: readonly string[] = ["rerequested", "requested_action"];

const isBot = (sender: Fields): boolean => sender.text("type") === "Bot" || sender.text("login").endsWith("[bot]");

/** @param kind the header `X-GitHub-Event` */
export function isQuiet(kind: string, fields: Fields): boolean {
  if (KINDS.includes(kind)) return true;
  const check = Object.hasOwn(CHECKS, kind) ? CHECKS[kind] : undefined;
  const action = fields.text("action");
  if (check) return ASKS_ANEW.includes(action) || !check.reported.includes(fields.text(check.at));
  const byBot = isBot(fields.within("sender"));
  if (CONVERSATIONS.includes(kind)) {
    // a review of single lines is accompanied by a comment for each of them, which contains more
    const isEmptyReview = kind === "pull_request_review" && fields.text("review.state") === "commented";
    if (isEmptyReview && fields.text("review.body") === "") return true;
    return QUIET_ACTIONS.has(action) || (byBot && COMMENTS.includes(kind));
  }
  if (kind === "push") return fields.has("deleted") || byBot;
  if (kind === "create" || kind === "delete") return byBot; // like the pushes that accompany them
  // one release comes as `created`, `published` and `released`
  if (kind === "release") return !["published", "unpublished", ""].includes(action);
  return kind === "star" && action === "deleted";
}
