/**
 * The bodies of `/wake` and `/agent`: each field is read by its schema here, and described by it in the API
 * description. Null is as good as no field.
 */
import { z } from "zod";

export const KEY_LENGTH_MAX = 256;
/** Of a chat's address. */
export const RECIPIENT_LENGTH_MAX = 512;

const text = z.string().trim().min(1);
const mode = z.enum(["now", "next-heartbeat"]).default("now");
/** Forms have no booleans and no numbers. */
const flag = z.union([z.boolean(), z.enum(["true", "false"])]).transform((value) => value === true || value === "true");
const digits = z
  .string()
  .trim()
  .regex(/^\d+(\.\d+)?$/);
const seconds = z.union([z.number().positive(), digits]).transform(Number).pipe(z.number().positive());

export const idempotencyKey = text.max(KEY_LENGTH_MAX);
const key = idempotencyKey.optional().describe("Makes repeats harmless, as the header Idempotency-Key does");

export const wakeFields = {
  text: text.describe("What happened; not blank"),
  mode: mode.describe("Whether the main session looks at it at once; anything else counts as `now`, with a warning"),
  idempotencyKey: key,
} as const;

export const agentFields = {
  message: text.describe("What the agent is asked; not blank"),
  name: text.optional().describe("Stands in front of the summary in the main session; default `Hook`"),
  sessionKey: text
    .optional()
    .describe("A constant one continues its conversation; default one that ends with the run. Never the main session"),
  agentId: text.optional().describe("An agent of the configuration that hooks may run"),
  wakeMode: mode.describe("When the main session looks at the summary"),
  deliver: flag.optional().describe("Whether the answer goes to a chat; default true"),
  channel: text.default("last").describe("`last`, or a chat platform's id or alias"),
  to: z
    .union([z.string().max(RECIPIENT_LENGTH_MAX).trim(), z.int().transform(String)])
    .optional()
    .describe("Recipient on that channel; default the one that the channel or the main session had last"),
  model: text.optional().describe("A model's name or alias that `agents.defaults.models` allows"),
  thinking: text.optional().describe("A level, such as `low`, `medium`, `high`; an unknown one is ignored"),
  timeoutSeconds: seconds.optional().describe("The longest that the run may take; cut at a day"),
  callbackUrl: z.string().optional().describe("Gets the outcome by a signed POST, where the configuration allows it"),
  idempotencyKey: key,
} as const;
