/** Sentry: requests of an internal integration. Payloads: docs.sentry.io, "Integration platform, webhooks". */
import { type Fields, fieldsOf } from "./fields.ts";
import { eventSummary, type Kind, kindIn, lines, type Preset } from "./preset.ts";

const event = (path: string) => (data: Fields) => {
  const each = data.within(path);
  return lines(
    ["Title", each.text("title", "message")],
    ["Level", each.text("level")],
    ["Where", each.text("culprit", "location")],
    ["Environment", each.text("environment")],
    ["Release", each.text("release")],
    ["Rule", data.text("triggered_rule")],
    each.text("web_url", "url"),
  );
};

const KINDS: Readonly<Record<string, Kind>> = {
  issue: {
    about: "An issue on Sentry changed.",
    tell: (data) => {
      const issue = data.within("issue");
      return lines(
        ["Issue", `${issue.text("shortId")} ${issue.text("title")}`.trim()],
        ["Project", issue.text("project.name", "project.slug")],
        ["Level", issue.text("level")],
        ["Status", issue.text("status")],
        ["Where", issue.text("culprit")],
        ["Times seen", issue.text("count")],
        ["Users", issue.text("userCount")],
        issue.text("web_url", "permalink"),
      );
    },
  },
  event_alert: { about: "An alert rule on Sentry was triggered.", tell: event("event") },
  error: { about: "An error came up on Sentry.", tell: event("error") },
  metric_alert: {
    about: "A metric alert on Sentry changed.",
    tell: (data) =>
      lines(
        data.text("description_title"),
        data.text("description_text"),
        ["Rule", data.text("metric_alert.alert_rule.name", "metric_alert.title")],
        data.text("web_url"),
      ),
  },
  comment: {
    about: "Someone commented on an issue on Sentry.",
    tell: (data) => lines(["Project", data.text("project_slug")], ["Comment", data.long("comment")]),
  },
};

export const sentry: Preset = {
  // an event has at most 1 MB, and Sentry adds other fields
  mapping: { match: { path: "sentry" }, name: "Sentry", maxBodyBytes: 2 * 1024 * 1024 },
  scheme: "sentry",
  deliveryIdAt: ["headers.request-id"],
  leavesOut: ({ headers, payload }) => {
    const action = fieldsOf(payload).text("action");
    const kind = headers["sentry-hook-resource"];
    if (kind === "comment") return action === "updated" || action === "deleted";
    if (kind === "seer") return action.endsWith("_started"); // `_completed` follows with the findings
    return kind === "installation" || (kind === "issue" && ["archived", "ignored"].includes(action));
  },
  describe: ({ headers, payload }) => {
    const fields = fieldsOf(payload);
    const kind = headers["sentry-hook-resource"] ?? "";
    const known = kindIn(KINDS, kind);
    const head = lines(
      ["Event", known ? "" : kind],
      ["Action", fields.text("action")],
      ["By", fields.text("actor.name")],
    );
    return eventSummary(known, { sender: "Sentry", head, fields: fields.within("data"), payload });
  },
};
