/**
 * The sections `agents` and `session` of the configuration: which models turns run on, how long they may take, when the
 * heartbeat comes, and how long conversations grow.
 */
import { Type } from "@sinclair/typebox";
import { isTimeZone, parseDuration } from "../../base/index.ts";
import { oneOfTexts, type Parsed, readable, reader, refined, strictObject } from "../../base/schema.ts";

const NS_PER_MS = 1e6;
const DURATION = 'a duration such as "30m"';

/** Parses `"30m"`, or a number of minutes, into milliseconds. */
const durationMs = (minutes: number) =>
  readable(Type.Union([Type.String(), Type.Number()], { default: minutes, expected: DURATION }), (value) => {
    const text = typeof value === "number" || /^\d+$/.test(value) ? `${value}m` : value;
    const ns = parseDuration(text) ?? -1;
    return ns >= 0 ? { value: ns / NS_PER_MS } : { problem: `expected ${DURATION}, got ${JSON.stringify(value)}` };
  });

const clock = Type.String({
  pattern: "^([01]\\d|2[0-3]):[0-5]\\d$|^24:00$",
  expected: 'a time such as "08:30"',
});

export const THINKING_LEVELS = ["off", "minimal", "low", "medium", "high", "max"] as const;

const activeHours = strictObject({
  start: clock,
  end: clock,
  /** IANA name; default: the machine's zone. */
  timezone: Type.Optional(
    refined(Type.String(), (zone) =>
      isTimeZone(zone) ? undefined : 'expected the IANA name of a time zone, such as "Europe/Paris"',
    ),
  ),
});

const heartbeat = strictObject(
  {
    /** 0 turns the timer off; explicit requests still get a heartbeat. */
    every: durationMs(30),
    prompt: Type.Optional(Type.String({ minLength: 1 })),
    /** A reply with at most this much text besides the acknowledgement is not sent. */
    ackMaxChars: Type.Integer({ minimum: 0, maximum: 4000, default: 300 }),
    activeHours: Type.Optional(activeHours),
    /** `last`, `none`, or a channel. */
    target: Type.String({ default: "last" }),
    to: Type.Optional(Type.String()),
    model: Type.Optional(Type.String()),
    /** Tools of tool servers: harmless ones that may be repeated. */
    tools: Type.Array(Type.String({ pattern: "^[^/]+/.+$", expected: "SERVER/TOOL or SERVER/*" }), { default: [] }),
  },
  { default: {} },
);

const modelEntry = strictObject({ alias: Type.Optional(Type.String({ minLength: 1 })) });

const TIMEOUT_SECONDS = { exclusiveMinimum: 0, maximum: 86_400 };
const agentSettings = {
  model: Type.Optional(Type.String({ minLength: 1 })),
  systemPrompt: Type.Optional(Type.String()),
  thinking: Type.Optional(oneOfTexts(THINKING_LEVELS)),
  /** Seconds that a turn may take. */
  timeoutSeconds: Type.Optional(Type.Number(TIMEOUT_SECONDS)),
  /** Tools that conversations may use; hooks have separate lists. */
  tools: Type.Optional(Type.Array(Type.String())),
};

const agentId = Type.String({ pattern: "^[a-z0-9][a-z0-9_-]{0,63}$", expected: "small letters, digits, '-' and '_'" });

export const agentsSchema = reader(
  strictObject(
    {
      defaults: strictObject(
        {
          ...agentSettings,
          model: Type.String({ minLength: 1, default: "hearth" }),
          timeoutSeconds: Type.Number({ ...TIMEOUT_SECONDS, default: 600 }),
          /** Models that requests may name, with aliases; empty or absent: every model of the store. */
          models: Type.Record(Type.String(), modelEntry, { default: {} }),
          heartbeat,
          /** Turns that may run at once. */
          maxConcurrent: Type.Integer({ minimum: 1, maximum: 256, default: 4 }),
        },
        { default: {} },
      ),
      /** Other agents than the default one, by id. */
      list: Type.Array(strictObject({ id: agentId, ...agentSettings }), { default: [] }),
    },
    { default: {} },
  ),
);
export type AgentsConfig = Parsed<typeof agentsSchema>;
export type HeartbeatConfig = AgentsConfig["defaults"]["heartbeat"];

export const sessionSchema = reader(
  strictObject(
    {
      mainKey: Type.String({ minLength: 1, maxLength: 256, default: "main" }),
      /** Events that may wait for the next turn of a session. */
      maxEvents: Type.Integer({ minimum: 1, maximum: 100_000, default: 2000 }),
      /** Share of the model's context that history may fill before it is compacted. */
      compactAt: Type.Number({ minimum: 0.1, maximum: 0.95, default: 0.7 }),
      /** Sessions of hooks are deleted after this time without use; 0: never. */
      idleExpiry: durationMs(30 * 24 * 60),
    },
    { default: {} },
  ),
);
export type SessionConfig = Parsed<typeof sessionSchema>;
