import { describe, expect, test } from "bun:test";
import { run, promptOf } from "./run.ts";

describe("alertmanager", () => {
  const alert = (status: string, instance: string) => ({
    status,
    labels: { alertname: "LampDark", severity: "critical", instance },
    annotations: { summary: "The lamp is dark", runbook_url: "https://r/1" },
    startsAt: "2026-01-02T03:00:00Z",
    fingerprint: "f1",
  });
  const group = {
    version: "4",
    groupKey: '{}:{alertname="LampDark"}',
    status: "firing",
    groupLabels: { alertname: "LampDark" },
    commonLabels: { severity: "critical" },
    commonAnnotations: {},
    externalURL: "https://am/",
    truncatedAlerts: 2,
    alerts: [alert("firing", "east"), alert("resolved", "west")],
  };
  test("describes a firing group", async () => {
    const text = await promptOf("alertmanager", group);
    for (const each of [
      "are firing",
      "Group: LampDark",
      "- FIRING LampDark, severity critical, east, The lamp is dark, since 2026-01-02T03:00:00Z, https://r/1",
      "- RESOLVED LampDark, severity critical, west",
      "and 2 that were not sent",
    ])
      expect(text).toContain(each);
  });
  test("describes a resolved group", async () =>
    expect(await promptOf("alertmanager", { ...group, status: "resolved" })).toContain("were resolved"));
  test("passes on alerts of another form as JSON", async () => {
    const panel = { title: "[Alerting] Lamp", ruleName: "Lamp", state: "alerting", message: "dark for 5m" };
    for (const each of ["are firing", "[Alerting] Lamp", "dark for 5m"])
      expect(await promptOf("alertmanager", panel)).toContain(each);
    expect(await promptOf("alertmanager", { ...panel, state: "ok" })).toContain("were resolved");
  });
  test("runs nothing for an empty object", async () =>
    expect(await run("alertmanager", {})).toEqual({ kind: "nothing" }));
});
