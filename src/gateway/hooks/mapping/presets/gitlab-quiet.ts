/** Events of GitLab that need no action. docs/senders.md has the same table. */
import type { Fields } from "./fields.ts";

/** Users of access tokens, of the service desk and of GitLab's own programs, and names that look like bots. */
const BOT_NAMES = [
  String.raw`^(project|group)_\d+_bot(_|\d|$)`,
  "^(alert|support|security|automation|duo)-?bot$",
  "^service_account_",
  "^ghost$",
  "^gitlab-?duo",
  "[-_]bot$",
  String.raw`\[bot\]$`,
];
const BOT = new RegExp(BOT_NAMES.join("|"), "i");

/** Updates of an issue or a merge request that may need action; the others are labels, edits and pushes. */
const TOLD_CHANGES: readonly string[] = ["assignees", "reviewers"];

const ENDED: readonly string[] = ["success", "failed"];

function isQuietUpdate(fields: Fields): boolean {
  if (fields.text("object_attributes.action") !== "update") return false;
  const isReady = fields.text("changes.draft.current") === "false";
  return !isReady && !TOLD_CHANGES.some((name) => fields.has(`changes.${name}`));
}

export function isQuiet(fields: Fields): boolean {
  const byBot = BOT.test(fields.text("user.username", "user_username"));
  switch (fields.text("object_kind")) {
    case "push":
    case "tag_push":
      // a deleted branch or tag has no commit afterwards
      return byBot || /^0+$/.test(fields.text("after"));
    case "note":
      return byBot || fields.has("object_attributes.system") || fields.text("object_attributes.action") === "update";
    case "issue":
    case "work_item":
    case "merge_request":
      return isQuietUpdate(fields);
    case "pipeline":
      return !ENDED.includes(fields.text("object_attributes.status"));
    case "build":
      return fields.text("build_status") !== "failed" || fields.has("build_allow_failure");
    case "deployment":
      return !ENDED.includes(fields.text("status"));
    case "release":
      return ["update", "delete"].includes(fields.text("action"));
    case "emoji":
      return fields.text("event_type", "object_attributes.action") === "revoke";
    default:
      return fields.text("event_name") === "repository_update"; // also sent as a push
  }
}
