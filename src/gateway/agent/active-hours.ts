/** The hours in which the timer may wake the agent. Explicit requests ignore them. */
import type { HeartbeatConfig } from "./config.ts";

const MINUTES_PER_HOUR = 60;

/**
 * Includes `start`, excludes `end`. An `end` before `start` lies past midnight; equal ones mean the whole day. An
 * unknown time zone counts as always active, because an additional heartbeat does less harm than a missing one.
 */
export function isActive(hours: HeartbeatConfig["activeHours"], nowMs: number): boolean {
  if (!hours) return true;
  const now = minuteOfDay(nowMs, hours.timezone);
  if (now === undefined) return true;
  const [start, end] = [minutesOf(hours.start), minutesOf(hours.end)];
  if (start === end) return true;
  return start < end ? now >= start && now < end : now >= start || now < end;
}

function minutesOf(clock: string): number {
  const [hours = 0, minutes = 0] = clock.split(":").map(Number);
  return hours * MINUTES_PER_HOUR + minutes;
}

function minuteOfDay(ms: number, timeZone: string | undefined): number | undefined {
  try {
    const format = new Intl.DateTimeFormat("en-GB", {
      hour: "2-digit",
      minute: "2-digit",
      hourCycle: "h23",
      ...(timeZone === undefined ? {} : { timeZone }),
    });
    return minutesOf(format.format(ms));
  } catch {
    return undefined;
  }
}
