import { expect, test } from "bun:test";
import { agentsSchema, sessionSchema } from "../../../src/gateway/agent/config.ts";

const heartbeatOf = (heartbeat: unknown) => agentsSchema.parse({ defaults: { heartbeat } }).defaults.heartbeat;

test("defaults: the embedded model, ten minutes, a heartbeat every half hour", () => {
  const { defaults } = agentsSchema.parse({});
  expect(defaults).toMatchObject({ model: "hearth", timeoutSeconds: 600, models: {} });
  expect(defaults.heartbeat).toMatchObject({ every: 1_800_000, ackMaxChars: 300, target: "last" });
  expect(sessionSchema.parse({}).mainKey).toBe("main");
});

test("a heartbeat's interval is a duration, or minutes; 0 is off", () => {
  expect(heartbeatOf({ every: "90s" }).every).toBe(90_000);
  expect(heartbeatOf({ every: 5 }).every).toBe(300_000);
  expect(heartbeatOf({ every: "5" }).every).toBe(300_000);
  expect(heartbeatOf({ every: 0 }).every).toBe(0);
  expect(() => heartbeatOf({ every: "soon" })).toThrow('expected a duration such as "30m", got "soon"');
  expect(() => heartbeatOf({ every: "-5m" })).toThrow("duration");
});

test("a time zone that this machine does not know is refused", () => {
  const zoneOf = (timezone: string) =>
    heartbeatOf({ activeHours: { start: "08:00", end: "18:00", timezone } }).activeHours?.timezone;
  expect(zoneOf("Europe/Paris")).toBe("Europe/Paris");
  expect(() => zoneOf("Nowhere/City")).toThrow('expected the IANA name of a time zone, such as "Europe/Paris"');
});

test("unknown keys are refused", () => {
  expect(agentsSchema.safeParse({ default: {} }).success).toBe(false);
  expect(agentsSchema.safeParse({ defaults: { heartbeat: { each: 1 } } }).success).toBe(false);
});
