/** Events that need no answer: each preset's events, next to similar events that do. */
import { describe, expect, test } from "bun:test";
import { plain } from "../../../../../src/gateway/agent/boundary/tainted-text.ts";
import { hooksSchema, type PresetName } from "../../../../../src/gateway/hooks/config.ts";
import { makeMappings, runMapping } from "../../../../../src/gateway/hooks/mapping/index.ts";
import { makeRequest } from "../view.ts";
import * as github from "./github-payloads.ts";
import { run, promptOf } from "./run.ts";

const quiet = async (name: PresetName, payload: unknown, headers: Record<string, string> = {}) =>
  expect(await run(name, payload, headers)).toEqual({ kind: "nothing" });

describe("slack", () => {
  const envelope = (event: object, more: object = {}) => ({ type: "event_callback", event_id: "Ev1", event, ...more });
  const said = { user: "U1", text: "see <https://x.y>", ts: "5.1" };
  const message = (fields: object) => envelope({ type: "message", channel: "C1", ts: "5.2", ...fields });
  const changed = (now: object, before: object = said) =>
    message({ subtype: "message_changed", hidden: true, message: now, previous_message: before });

  test.each<[string, object]>([
    ["the preview of a link", changed({ ...said, attachments: [{ from_url: "https://x.y" }] })],
    ["a first reply, which changes its thread's message", changed({ ...said, reply_count: 1 })],
    ["a deletion", message({ subtype: "message_deleted", hidden: true, deleted_ts: "5.1", previous_message: said })],
    ["a deleted message with replies", changed({ subtype: "tombstone", user: "USLACKBOT", text: "was deleted" })],
    ["an edit by an app", changed({ ...said, text: "new", bot_id: "B1" })],
    ["a person who joins", message({ subtype: "channel_join", ...said })],
    ["a new topic", message({ subtype: "channel_topic", topic: "x", ...said })],
    ["a changed channel name", message({ subtype: "channel_name", ...said })],
    ["the notice of a reply", message({ subtype: "message_replied", hidden: true, message: said })],
    ["a message of Slackbot", message({ ...said, user: "USLACKBOT" })],
    ["a message without content", message({ user: "U1", text: " " })],
    ["a link that asks for a preview", envelope({ type: "link_shared", links: [] })],
    ["a file, which its message names too", envelope({ type: "file_shared", file_id: "F1" })],
    ["a removed reaction", envelope({ type: "reaction_removed", user: "U1" })],
    ["a closed dialog", { type: "view_closed", user: { id: "U1" } }],
    ["a cancelled dialog", { type: "dialog_cancellation", user: { id: "U1" } }],
    ["a key pressed in a menu", { type: "block_suggestion", value: "a", user: { id: "U1" } }],
    ["a key pressed in a dialog's menu", { type: "dialog_suggestion", value: "a", user: { id: "U1" } }],
    ["a check of the certificate", { ssl_check: "1", token: "x" }],
    [
      "a message of this app's own user",
      envelope({ type: "message", ...said }, { authorizations: [{ user_id: "U1", is_bot: true }] }),
    ],
    [
      "this app's joining",
      envelope(
        { type: "member_joined_channel", user: "U1", channel: "C1" },
        { authorizations: [{ user_id: "U1", is_bot: true }] },
      ),
    ],
  ])("ignores %s", (_, payload) => quiet("slack", payload));

  test.each<[string, object, string]>([
    ["a file with words", message({ ...said, subtype: "file_share", files: [{ name: "a.txt" }] }), "file a.txt"],
    [
      "a file alone",
      message({ user: "U1", text: "", subtype: "file_share", files: [{ name: "a.txt" }] }),
      "file a.txt",
    ],
    ["a reply that the channel sees too", message({ ...said, subtype: "thread_broadcast" }), "see <https"],
    ["a /me message", message({ ...said, subtype: "me_message" }), "From: U1"],
    ["a forwarded message", message({ user: "U1", text: "", attachments: [{ text: "lamp is dark" }] }), "lamp is dark"],
    ["an edit", changed({ ...said, text: "see below" }), "From: U1\nThe message was edited.\nText: see below"],
    [
      "a message of another person",
      envelope({ type: "message", ...said }, { authorizations: [{ user_id: "U2", is_bot: true }] }),
      "see",
    ],
  ])("runs %s", async (_, payload, wanted) => expect(await promptOf("slack", payload)).toContain(wanted));

  test("uses one item id for a message and its edits, so that an edit is not run again", async () => {
    const idOf = async (payload: object) => {
      const outcome = await run("slack", payload);
      return outcome.kind === "actions" && outcome.actions[0]?.itemId;
    };
    expect(await idOf(changed({ ...said, text: "new" }))).toBe("C1/5.1");
    expect(await idOf(message({ ...said, ts: "5.1" }))).toBe("C1/5.1");
    expect(await idOf(message({ ...said, ts: "x".repeat(1000) }))).toMatch(/^[0-9a-f]{32}$/);
  });
});

describe("github", () => {
  const bot = { login: "ci[bot]", type: "Bot" };
  const wanted = { ...github.issueOpened };
  const check = (kind: string, conclusion: string | null, action = "completed") => ({ action, [kind]: { conclusion } });
  test.each<[string, object]>([
    ...["labeled", "unlabeled", "edited", "deleted", "milestoned", "locked", "pinned"].map(
      (action): [string, object] => ["issues", { ...wanted, action }],
    ),
    ...["synchronize", "edited", "labeled", "auto_merge_enabled"].map((action): [string, object] => [
      "pull_request",
      { ...github.pullRequest, action },
    ]),
    ["issue_comment", { ...github.comment, action: "edited" }],
    ["issue_comment", { ...github.comment, action: "deleted" }],
    ["issue_comment", { ...github.comment, sender: bot }],
    ["pull_request_review", { ...github.review, sender: { login: "x[bot]" } }],
    ["pull_request_review", { ...github.review, review: { state: "commented", body: null } }],
    ["push", { ...github.push, sender: bot }],
    ["push", { ...github.push, deleted: true, commits: [] }],
    ["release", { ...github.release, action: "created" }],
    ["release", { ...github.release, action: "released" }],
    ["workflow_run", check("workflow_run", null, "requested")],
    ["workflow_run", check("workflow_run", "skipped")],
    ["check_run", check("check_run", "success")],
    ["check_run", check("check_run", null, "created")],
    ["workflow_job", check("workflow_job", null, "queued")],
    ["status", { state: "pending" }],
    ["status", { state: "success" }],
    ["deployment_status", { deployment_status: { state: "in_progress" } }],
    ["deployment", { action: "created", deployment: { environment: "production" } }],
    ["check_run", check("check_run", "failure", "rerequested")],
    ["check_run", check("check_run", "failure", "requested_action")],
    ["check_suite", check("check_suite", "failure", "rerequested")],
    ["create", { ref_type: "branch", ref: "dependabot/npm/x", sender: bot }],
    ["delete", { ref_type: "branch", ref: "dependabot/npm/x", sender: bot }],
    ["sub_issues", { action: "sub_issue_added" }],
    ["projects_v2_item", { action: "reordered" }],
    ["secret_scanning_scan", { action: "completed" }],
    ["secret_scanning_alert_location", { action: "created" }],
    ["page_build", { build: { status: "built" } }],
    ["star", { action: "deleted" }],
    ["watch", { action: "started" }],
    ["installation", { action: "created" }],
    ["ping", github.ping],
  ])("ignores %s %#", (kind, payload) => quiet("github", payload, { "x-github-event": kind }));

  test.each<[string, object]>([
    ["pull_request", { ...github.pullRequest, sender: { login: "dependabot[bot]", type: "Bot" } }],
    ["issues", { ...wanted, sender: bot }],
    ["issues", { ...wanted, action: "closed" }],
    ["pull_request", { ...github.pullRequest, action: "review_requested" }],
    ["pull_request_review", { ...github.review, review: { state: "commented", body: "Why?" } }],
    ["check_run", check("check_run", "failure")],
    ["workflow_run", check("workflow_run", "success")],
    ["status", { state: "failure", context: "ci" }],
    ["create", { ref_type: "tag", ref: "v1" }],
    ["page_build", { build: { status: "errored" } }],
    ["secret_scanning_alert", { action: "created", sender: bot }],
    ["dependabot_alert", { action: "created", sender: bot }],
    ["repository", { action: "deleted", sender: bot }],
    ["release", github.release],
    ["push", github.push],
  ])("runs %s %#", async (kind, payload) =>
    expect(await promptOf("github", payload, { "x-github-event": kind })).toContain("GitHub"),
  );
});

describe("gitlab", () => {
  const bot = { username: "project_17_bot_a1b2" };
  const about = (kind: string, attributes: object, more: object = {}) => ({
    object_kind: kind,
    object_attributes: attributes,
    ...more,
  });
  const draft = { changes: { draft: { previous: true, current: false } } };
  test.each<[object]>([
    [about("merge_request", { action: "update" }, { changes: { labels: {} } })],
    [about("merge_request", { action: "update", oldrev: "a" })],
    [about("merge_request", { action: "update" }, { changes: { draft: { previous: false, current: true } } })],
    [about("issue", { action: "update" }, { changes: { title: {} } })],
    [about("work_item", { action: "update" })],
    [about("note", { note: "x", system: true })],
    [about("note", { note: "x", action: "update" })],
    [about("note", { note: "x" }, { user: bot })],
    [about("note", { note: "x" }, { user: { username: "GitLab-Security-Bot" } })],
    [about("note", { note: "x" }, { user: { username: "GitLabDuo" } })],
    [about("note", { note: "x" }, { user: { username: "renovate-bot" } })],
    [about("note", { note: "x" }, { user: { username: "dependabot[bot]" } })],
    [about("pipeline", { status: "running" })],
    [about("pipeline", { status: "canceled" })],
    [{ object_kind: "build", build_status: "success" }],
    [{ object_kind: "build", build_status: "failed", build_allow_failure: true }],
    [{ object_kind: "deployment", status: "running" }],
    [{ object_kind: "push", after: "0".repeat(40) }],
    [{ object_kind: "push", after: "a".repeat(40), user_username: "group_3_bot" }],
    [{ object_kind: "release", action: "delete" }],
    [{ object_kind: "emoji", event_type: "revoke" }],
    [{ event_name: "repository_update" }],
  ])("ignores %j", (payload) => quiet("gitlab", payload));

  test.each<[object]>([
    [about("merge_request", { action: "open" }, { user: bot })],
    [about("merge_request", { action: "update" }, draft)],
    [about("merge_request", { action: "update" }, { changes: { reviewers: {} } })],
    [about("issue", { action: "update" }, { changes: { assignees: {} } })],
    [about("issue", { action: "close" })],
    [about("note", { note: "x", system: false }, { user: { username: "robot_fan" } })],
    [about("pipeline", { status: "failed" })],
    [{ object_kind: "build", build_status: "failed", build_allow_failure: false }],
    [{ object_kind: "push", after: "a".repeat(40) }],
  ])("runs %j", async (payload) => expect(await promptOf("gitlab", payload)).toContain("GitLab"));
});

describe("sentry, stripe, alertmanager", () => {
  test.each<[string, string]>([
    ["comment", "updated"],
    ["comment", "deleted"],
    ["issue", "archived"],
    ["installation", "deleted"],
    ["seer", "root_cause_started"],
  ])("sentry: ignores %s %s", (kind, action) => quiet("sentry", { action }, { "sentry-hook-resource": kind }));
  test.each<[string, string]>([
    ["comment", "created"],
    ["issue", "resolved"],
    ["metric_alert", "resolved"],
    ["seer", "root_cause_completed"],
  ])("sentry: runs %s %s", async (kind, action) =>
    expect(await promptOf("sentry", { action }, { "sentry-hook-resource": kind })).toContain("Sentry"),
  );

  const event = (type: string, object: object = {}) => ({ id: "evt_1", type, data: { object } });
  test.each([
    "payment_intent.created",
    "invoice.updated",
    "invoice.finalized",
    "invoice.payment_succeeded",
    "charge.updated",
    "customer.updated",
    "payment_method.attached",
    "price.created",
    "balance.available",
    "payout.created",
    "setup_intent.canceled",
    "coupon.created",
    "promotion_code.updated",
    "test_helpers.test_clock.advancing",
  ])("stripe: ignores %s", (type) => quiet("stripe", event(type)));
  test("stripe: ignores a charge that belongs to a payment intent", async () => {
    await quiet("stripe", event("charge.succeeded", { payment_intent: "pi_1" }));
    expect(await promptOf("stripe", event("charge.succeeded", { payment_intent: null }))).toContain("charge");
  });
  test.each([
    "payment_intent.succeeded",
    "invoice.paid",
    "customer.subscription.updated",
    "payout.failed",
    "charge.dispute.created",
    "refund.failed",
  ])("stripe: runs %s", async (type) => expect(await promptOf("stripe", event(type))).toContain("Stripe"));

  const group = (...names: string[]) => ({
    status: "firing",
    alerts: names.map((alertname) => ({ status: "firing", labels: { alertname } })),
  });
  test("alertmanager: ignores groups of alerts that always fire", async () => {
    await quiet("alertmanager", group("Watchdog"));
    await quiet("alertmanager", group("Watchdog", "InfoInhibitor"));
    expect(await promptOf("alertmanager", group("Watchdog", "LampDark"))).toContain("LampDark");
  });
});

describe("an operator's preset settings", () => {
  const outcome = async (settings: object, payload: object) => {
    const hooks = hooksSchema.parse({ presets: ["github"], presetSettings: { github: settings } });
    const transforms = { run: () => expect.unreachable("an event that is left out reaches no transform") };
    return runMapping(
      makeMappings({ hooks, folder: "/" }).all[0]!,
      makeRequest({ path: "github", payload, headers: { "x-github-event": "issues" } }),
      { transforms, transformsDir: "/nowhere", transformTimeoutMs: 1000, isChannel: () => false },
    );
  };
  const labeled = { ...github.issueOpened, action: "labeled" };

  test("give neither a template nor a transform an event that the preset ignores", async () => {
    expect(await outcome({ messageTemplate: "{{ payload }}" }, labeled)).toEqual({ kind: "nothing" });
    expect(await outcome({ transform: { module: "x.ts" } }, labeled)).toEqual({ kind: "nothing" });
  });

  test("with allEvents run every event", async () => {
    const found = await outcome({ allEvents: true }, labeled);
    const [action] = found.kind === "actions" ? found.actions : [];
    expect(action?.kind === "agent" && plain(action.message)).toContain("Action: labeled");
  });
});
