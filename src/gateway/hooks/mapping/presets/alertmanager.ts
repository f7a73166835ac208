/** Prometheus Alertmanager: a group of alerts. Payload: prometheus.io, "Alerting, configuration, webhook_config". */
import { ownValue } from "../../../../base/index.ts";
import { type Fields, fieldsOf, jsonText } from "./fields.ts";
import { BODY_CHARS_MAX, lines, OTHER_CHARS_MAX, type Preset, summary } from "./preset.ts";

const alertLine = (alert: Fields): string =>
  [
    `${alert.text("status").toUpperCase()} ${alert.text("labels.alertname")}`.trim(),
    alert.text("labels.severity") && `severity ${alert.text("labels.severity")}`,
    alert.text("labels.instance", "labels.pod", "labels.job"),
    alert.text("annotations.summary", "annotations.description", "annotations.message"),
    alert.text("startsAt") && `since ${alert.text("startsAt")}`,
    alert.text("annotations.runbook_url"),
  ]
    .filter((part) => part !== "")
    .join(", ");

/** The states that Alertmanager and Grafana use. */
const RESOLVED = ["resolved", "ok"];

/** Alerts that always fire, to prove that alerts arrive, or to silence others. */
const STANDING: readonly string[] = ["Watchdog", "DeadMansSwitch", "InfoInhibitor"];

const isStanding = (payload: unknown): boolean => {
  const alerts = ownValue(payload, ["alerts"]);
  if (!Array.isArray(alerts) || alerts.length === 0) return false;
  return alerts.every((alert) => STANDING.includes(fieldsOf(alert).text("labels.alertname")));
};

export const alertmanager: Preset = {
  mapping: { match: { path: "alertmanager" }, name: "Alertmanager" },
  deliveryIdAt: [], // a group is sent again under the same key while it fires
  leavesOut: ({ payload }) => isStanding(payload),
  describe: ({ payload }) => {
    const group = fieldsOf(payload);
    const isResolved = RESOLVED.includes(group.text("status") || group.text("state"));
    const text = lines(
      ["Group", group.text("groupLabels.alertname", "commonLabels.alertname", "groupKey")],
      ["Severity", group.text("commonLabels.severity")],
      group.text("commonAnnotations.summary", "commonAnnotations.description"),
      group.list("alerts", alertLine),
      Number(group.text("truncatedAlerts")) > 0 ? `and ${group.text("truncatedAlerts")} that were not sent` : "",
      group.text("externalURL"),
    );
    const isEmpty = typeof payload !== "object" || payload === null || Object.keys(payload).length === 0;
    if (text === "" && isEmpty) return undefined;
    const about = isResolved ? "Alerts of the monitoring were resolved." : "Alerts of the monitoring are firing.";
    const shown = text === "" ? jsonText(payload, OTHER_CHARS_MAX) : text; // Grafana's own alerts before its version 8
    return summary(`${about} Tell what is affected, and what to look at first.`, shown.slice(0, BODY_CHARS_MAX));
  },
};
