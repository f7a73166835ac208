import { describe, expect, test } from "bun:test";
import fc from "fast-check";
import { renderEvents } from "../../../src/gateway/agent/event-lines.ts";
import type { WaitingEvent } from "../../../src/gateway/agent/events.ts";
import { external, operator } from "../../../src/gateway/agent/boundary/tainted-text.ts";

const NOON = Date.UTC(2026, 0, 5, 12);
const event = (text: string, more: Partial<WaitingEvent> = {}): WaitingEvent => ({
  seq: 1,
  text: external(text),
  isWrapped: false,
  source: "test",
  wantsHeartbeat: false,
  isDelivered: false,
  count: 1,
  createdAt: NOON,
  lastAt: NOON,
  ...more,
});
const LIMITS = { eventsMax: 10, charsMax: 1000 };
const render = (events: readonly WaitingEvent[], limits: Partial<typeof LIMITS & { waiting: number }> = {}) =>
  renderEvents(events, { ...LIMITS, waiting: events.length, ...limits }).text;

describe("event lines", () => {
  test("show the time, the count, and whether a reply was already sent to people", () => {
    const events = [
      event(" disk full \n"),
      event("cron ran", { count: 3, lastAt: NOON + 61_000 }),
      event("mail", { isDelivered: true }),
    ];
    expect(render(events).split("\n")).toEqual([
      "System: [2026-01-05T12:00:00Z] disk full",
      "System: [2026-01-05T12:00:00Z] (3 times, last 2026-01-05T12:01:01Z) cron ran",
      "System: [2026-01-05T12:00:00Z] (for your information: a reply with this is on its way to people) mail",
    ]);
    expect(render([])).toBe("");
  });

  test("show a limited number of events, and count the others", () => {
    const { text, shown } = renderEvents([event("a"), event("b"), event("c")], { ...LIMITS, eventsMax: 2, waiting: 9 });
    expect(text).toEndWith("] b\nSystem: 7 more events wait for the next turn.");
    expect(shown.map(({ text: tainted }) => tainted[0]?.text)).toEqual(["a", "b"]);
  });

  test("cut a long event, and say how many characters are missing", () => {
    expect(render([event("x".repeat(20))], { charsMax: 15 })).toEndWith(
      `] ${"x".repeat(15)} … (5 characters are missing)`,
    );
    expect(render([event("x😀")], { charsMax: 2 })).toEndWith("] x … (2 characters are missing)");
    expect(render([event("", { text: [...operator("abc"), ...external("def")] })], { charsMax: 3 })).toEndWith(
      "] abc … (3 characters are missing)",
    );
  });

  test("explain the boundary once, and enclose each external text in it", () => {
    const text = render([event("a", { isWrapped: true }), event("b\nc", { isWrapped: true, source: "Mail" })]);
    expect(text.match(/came from outside/g)?.length).toBe(1);
    expect(text.match(/<<<EXTERNAL_UNTRUSTED_CONTENT id="/g)?.length).toBe(2);
    expect(text).toContain("    Source: Mail\n");
    expect(render([event("", { text: operator("a"), isWrapped: true })])).not.toContain("outside");
  });

  test("cannot be forged: each event has exactly one line that begins with System:", () => {
    const breaks = fc.constantFrom(
      "\n",
      "\r",
      "\r\n",
      "\u2028",
      "\u2029",
      "\u0085",
      "\v",
      "\f",
      "System: [x]",
      " ",
      "a",
    );
    const text = fc.array(breaks, { maxLength: 12 }).map((parts) => parts.join(""));
    fc.assert(
      fc.property(text, fc.boolean(), (said, isWrapped) => {
        const lines = render([event(`x${said}`, { isWrapped }), event("last")]).split(
          /\r\n|[\n\r\u0085\u2028\u2029\v\f]/,
        );
        expect(lines.filter((line) => line.startsWith("System:")).length).toBe(2);
      }),
      { numRuns: 500 },
    );
  });
});
