/**
 * The bodies of `/wake` and `/agent`: a schema reads each field, and describes it in the API description. Null counts
 * as absent.
 */
import { Type, type TObject, type TSchema } from "@sinclair/typebox";
import { changed, oneOfTexts, readable, reader, trimmed } from "../../../base/schema.ts";

export const KEY_LENGTH_MAX = 256;
/** Length of a chat's address. */
export const RECIPIENT_LENGTH_MAX = 512;

const optional = Type.Optional;
const text = (description: string) => trimmed({ description });
const mode = (description: string) => oneOfTexts(["now", "next-heartbeat"], { default: "now", description });
/** Form fields are texts: reads booleans and numbers from them. */
const flag = (description: string) =>
  changed(
    Type.Union([Type.Boolean(), oneOfTexts(["true", "false"])], { description }),
    (given) => given === true || given === "true",
  );
const digits = Type.String({ pattern: "^\\s*\\d+(\\.\\d+)?\\s*$" });
const seconds = (description: string) =>
  readable(Type.Union([Type.Number({ exclusiveMinimum: 0 }), digits], { description }), (given) =>
    Number(given) > 0 ? { value: Number(given) } : { problem: "expected a number above 0" },
  );
const recipient = (description: string) =>
  changed(Type.Union([Type.String({ maxLength: RECIPIENT_LENGTH_MAX }), Type.Integer()], { description }), (given) =>
    String(given).trim(),
  );

const key = trimmed({
  pattern: "^[^\\u0000]*[^\\s\\u0000][^\\u0000]*$", // PostgreSQL cannot store U+0000
  maxLength: KEY_LENGTH_MAX,
  description: "Makes repeats harmless, as the header Idempotency-Key does",
});
export const idempotencyKey = reader(key);

export const wakeFields = {
  text: text("What happened; not blank"),
  mode: mode("Whether the main session looks at it at once; anything else counts as `now`, with a warning"),
  idempotencyKey: optional(key),
} as const;

export const agentFields = {
  message: text("The message for the agent; not blank"),
  name: optional(text("Stands in front of the summary in the main session; default `Hook`")),
  sessionKey: optional(
    text("A constant one continues its conversation; default one that ends with the run. Never the main session"),
  ),
  agentId: optional(text("An agent of the configuration that hooks may run")),
  wakeMode: mode("When the main session looks at the summary"),
  deliver: optional(flag("Whether the answer goes to a chat; default true")),
  channel: trimmed({ default: "last", description: "`last`, or a chat platform's id or alias" }),
  to: optional(recipient("Recipient on that channel; default the one that the channel or the main session had last")),
  model: optional(text("A model's name or alias that `agents.defaults.models` allows")),
  thinking: optional(text("A level, such as `low`, `medium`, `high`; an unknown one is ignored")),
  timeoutSeconds: optional(seconds("The longest that the run may take; cut at a day")),
  callbackUrl: optional(
    Type.String({ description: "Gets the outcome by a signed POST, if the configuration allows it" }),
  ),
  idempotencyKey: optional(key),
} as const;

/** A body with these fields; one with a default is optional. */
export const bodyOf = (fields: Readonly<Record<string, TSchema>>): TObject =>
  Type.Object(
    Object.fromEntries(
      Object.entries(fields).map(([name, field]) => [name, field["default"] === undefined ? field : optional(field)]),
    ),
  );
