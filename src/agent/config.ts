/**
 * The sections `agents` and `session` of the configuration: which models turns run on, how long they may take, when the
 * heartbeat comes, and how long conversations grow.
 */
import { z } from "zod";
import { parseDuration } from "../base/duration.ts";

const NS_PER_MS = 1e6;
const MINUTE_MS = 60_000;

/** `"30m"`, or a number of minutes; milliseconds. */
const durationMs = z.union([z.string(), z.number()]).transform((value, context) => {
  const text = typeof value === "number" ? `${value}m` : /^\d+$/.test(value) ? `${value}m` : value;
  try {
    const ms = parseDuration(text) / NS_PER_MS;
    if (ms >= 0) return ms;
  } catch {
    // said below
  }
  context.addIssue({ code: "custom", message: `expected a duration such as "30m", got ${JSON.stringify(value)}` });
  return z.NEVER;
});

const clock = z.string().regex(/^([01]\d|2[0-3]):[0-5]\d$|^24:00$/, 'expected a time such as "08:30"');

export const THINKING_LEVELS = ["off", "minimal", "low", "medium", "high", "max"] as const;

const activeHours = z.strictObject({
  start: clock,
  end: clock,
  /** IANA name; the machine's own zone where absent. */
  timezone: z.string().optional(),
});

const heartbeat = z.strictObject({
  /** 0 turns the timer off; what asks for a heartbeat still gets one. */
  every: durationMs.default(30 * MINUTE_MS),
  prompt: z.string().min(1).optional(),
  /** A reply whose rest beside the acknowledgement is no longer than this says nothing. */
  ackMaxChars: z.int().min(0).max(4000).default(300),
  activeHours: activeHours.optional(),
  /** `last`, `none`, or a channel. */
  target: z.string().default("last"),
  to: z.string().optional(),
  model: z.string().optional(),
});

const modelEntry = z.strictObject({ alias: z.string().min(1).optional() });

const agentSettings = {
  model: z.string().min(1).optional(),
  systemPrompt: z.string().optional(),
  thinking: z.enum(THINKING_LEVELS).optional(),
  /** Seconds that a turn may take. */
  timeoutSeconds: z.number().positive().max(86_400).optional(),
  /** Names of the tools that conversations may use; hooks have lists of their own. */
  tools: z.array(z.string()).optional(),
};

export const agentsSchema = z.strictObject({
  defaults: z
    .strictObject({
      ...agentSettings,
      model: z.string().min(1).default("hearth"),
      timeoutSeconds: z.number().positive().max(86_400).default(600),
      /** Models that requests may name, with aliases; empty or absent: every model of the store. */
      models: z.record(z.string(), modelEntry).default({}),
      heartbeat: heartbeat.prefault({}),
      /** Turns that may run at once. */
      maxConcurrent: z.int().min(1).max(256).default(4),
    })
    .prefault({}),
  /** Agents beside the default one, by id. */
  list: z.array(z.strictObject({ id: z.string().regex(/^[a-z0-9][a-z0-9_-]{0,63}$/), ...agentSettings })).default([]),
});
export type AgentsConfig = z.output<typeof agentsSchema>;
export type HeartbeatConfig = AgentsConfig["defaults"]["heartbeat"];

export const sessionSchema = z.strictObject({
  mainKey: z.string().min(1).max(256).default("main"),
  /** Events that may wait for the next turn of a session. */
  maxEvents: z.int().min(1).max(100_000).default(2000),
  /** Share of the model's context that history may fill before it is compacted. */
  compactAt: z.number().min(0.1).max(0.95).default(0.7),
  /** Sessions of hooks that nobody has used for so long are forgotten; 0: never. */
  idleExpiry: durationMs.default(30 * 24 * 60 * MINUTE_MS),
});
export type SessionConfig = z.output<typeof sessionSchema>;
