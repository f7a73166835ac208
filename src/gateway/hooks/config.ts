/** The section `hooks` of the configuration: who may call, what a call does, and what is stored. */
import { Type, type TOptional, type TProperties } from "@sinclair/typebox";
import {
  changed,
  oneOfTexts,
  type Output,
  type Parsed,
  reader,
  refined,
  strictObject,
  trimmed,
} from "../../base/schema.ts";
import { isNetwork } from "../../base/system.ts";
import { LISTEN_EXPECTED, parseListen } from "./listen.ts";
import { mailSection } from "./mail/config.ts";
import { moment, secret, secrets, signature } from "./signature-config.ts";

export type { SignatureConfig } from "./signature-config.ts";

const BODY_BYTES_DEFAULT = 262_144;
const BODY_BYTES_MAX = 32 * 1024 * 1024;

const optional = Type.Optional;
const text = (options: object = {}) => Type.String(options);
const texts = (options: object = {}) => Type.Array(Type.String(), options);
const integer = (minimum: number, maximum: number, options: object = {}) =>
  Type.Integer({ minimum, maximum, ...options });
const above0 = (maximum: number, options: object = {}) => Type.Number({ exclusiveMinimum: 0, maximum, ...options });
const flag = (standard: boolean) => Type.Boolean({ default: standard });
const url = () => refined(Type.String(), (given) => (URL.canParse(given) ? undefined : "Invalid URL"));
const wakeMode = (options: object = {}) => oneOfTexts(["now", "next-heartbeat"], options);
/** Text with values in double braces; see `mappings/template.ts`. */
const template = text({ maxLength: 65_536 });
const scalar = Type.Union([Type.String(), Type.Number(), Type.Boolean(), Type.Null()]);

/** A condition on a request. `at` is a path as in templates: `headers.x-event`, `payload.action`. */
const test = strictObject({
  at: text({ minLength: 1 }),
  equals: optional(scalar),
  in: optional(Type.Array(scalar)),
  matches: optional(text({ maxLength: 512 })),
  exists: optional(Type.Boolean()),
});
export type ConditionTest = Output<typeof test>;
export type Condition =
  | ConditionTest
  | { readonly all: readonly Condition[] }
  | { readonly any: readonly Condition[] }
  | { readonly not: Condition };
const condition = Type.Unsafe<Condition>(
  Type.Recursive((self) =>
    Type.Union([
      test,
      strictObject({ all: Type.Array(self) }),
      strictObject({ any: Type.Array(self) }),
      strictObject({ not: self }),
    ]),
  ),
);

const channelNames = Type.Array(trimmed(), { maxItems: 8 });

/** A rate limit: a token bucket, full at the start. */
const rateLimit = refined(
  strictObject({
    perSecond: optional(above0(100_000)),
    perMinute: optional(above0(100_000)),
    /** Burst size; absent: one second's or one minute's requests. */
    burst: optional(integer(1, 1_000_000)),
  }),
  ({ perSecond, perMinute }) =>
    (perSecond === undefined) === (perMinute === undefined)
      ? "expected perSecond or perMinute, and only one of them"
      : undefined,
);
export type RateLimit = Output<typeof rateLimit>;

const matchFields = { path: optional(text()), source: optional(text()), when: optional(condition) };

/** `type/subtype` with parameters, limited to characters that a header can hold. */
const CONTENT_TYPE = "^[\\w.+-]+/[\\w.+-]+(; ?[\\w-]+=[\\w.-]+)*$";
const RESPONSE_CHARS_MAX = 16_384;

/** The answer to accepted requests, for senders that insist on a status or body. */
const response = refined(
  strictObject({
    status: integer(200, 204, { default: 200 }),
    /** A string is sent unchanged; other values as JSON. */
    body: optional(Type.Unknown()),
    /** Absent: JSON, or plain text for a string. */
    contentType: optional(text({ pattern: CONTENT_TYPE, maxLength: 128, expected: 'a type such as "text/xml"' })),
  }),
  ({ status, body }) => {
    if (status === 204 && body !== undefined) return "status 204 has no body";
    const { length } = typeof body === "string" ? body : (JSON.stringify(body) ?? "");
    return length > RESPONSE_CHARS_MAX ? `expected a body of at most ${RESPONSE_CHARS_MAX} characters` : undefined;
  },
);
export type ResponseConfig = Output<typeof response>;

/** Fields of a mapping without defaults. */
const optionalFields = {
  id: optional(trimmed({ maxLength: 128 })),
  name: optional(template),
  sessionKey: optional(template),
  messageTemplate: optional(template),
  textTemplate: optional(template),
  to: optional(template),
  /** Channels to try, in order, if the channel refuses the reply; absent: `hooks.fallbackChannels`. */
  fallbackChannels: optional(channelNames),
  model: optional(template),
  thinking: optional(template),
  timeoutSeconds: optional(integer(1, 86_400)),
  agentId: optional(text()),
  /** A list in the payload; each item becomes an action. Templates call it `item`. */
  forEach: optional(text({ minLength: 1, maxLength: 512 })),
  /** An id that stays the same when an item is sent again: each id is acted on once. */
  itemId: optional(template),
  transform: optional(strictObject({ module: trimmed(), export: optional(text()) })),
  auth: optional(signature),
  /**
   * True if an identical body is the same delivery, whatever its id. Default: true if the sender signs the body alone
   * and never sends two equal bodies, see `signatures/index.ts`.
   */
  dedupeBody: optional(Type.Boolean()),
  /** Replaces 202, 200 or 204. */
  response: optional(response),
  /** Answers a provider's check of the address. */
  handshake: optional(oneOfTexts(["slack", "github", "discord", "meta", "microsoft"])),
  maxBodyBytes: optional(integer(1, BODY_BYTES_MAX)),
  /** Maximum number of concurrent runs of this mapping. */
  maxConcurrent: optional(integer(1, 256)),
  /** Maximum number of waiting and running runs of this mapping, instead of `hooks.queue.maxPerMapping`. */
  maxQueued: optional(integer(1, 1_000_000)),
  /** Applies in addition to `hooks.rateLimit`. */
  rateLimit: optional(rateLimit),
  callbackUrl: optional(url()),
};

const kind = (options: object = {}) => oneOfTexts(["wake", "agent"], options);
/** The replacement for a missing value. */
const missing = (options: object = {}) => oneOfTexts(["empty", "keep", "error"], options);

const mapping = strictObject(
  {
    ...optionalFields,
    match: strictObject(matchFields, { default: {} }),
    action: kind({ default: "agent" }),
    wakeMode: wakeMode({ default: "now" }),
    missing: missing({ default: "empty" }),
    deliver: flag(true),
    channel: text({ default: "last" }),
    /** Tools that runs may use. */
    tools: texts({ default: [] }),
    allowUnsafeExternalContent: flag(false),
  },
  { default: {} },
);
export const mappingSchema = reader(mapping);
export type MappingConfig = Parsed<typeof mappingSchema>;

/** Overrides for a preset's mapping; `secrets` are for its sender's signatures. */
const presetSettings = strictObject({
  ...optionalFields,
  match: optional(strictObject(matchFields)),
  action: optional(kind()),
  wakeMode: optional(wakeMode()),
  missing: optional(missing()),
  deliver: optional(Type.Boolean()),
  channel: optional(text()),
  tools: optional(texts()),
  allowUnsafeExternalContent: optional(Type.Boolean()),
  secrets: optional(secrets),
  /** True if the preset's mapping also takes events that the preset skips; see `presets/preset.ts`. */
  allEvents: optional(Type.Boolean()),
});

export const PRESETS = ["mail", "github", "gitlab", "stripe", "slack", "sentry", "alertmanager", "generic"] as const;
export type PresetName = (typeof PRESETS)[number];

/** An additional token, for rotation or for one sender; `paths` limits its use. */
const namedToken = strictObject({
  id: text({ pattern: "^[\\w.-]{1,64}$", expected: "letters, digits, '.', '_' and '-', at most 64" }),
  token: secret,
  paths: optional(texts()),
  expiresAt: optional(moment()),
});

/** An object of which all keys have defaults. */
const group = <P extends TProperties>(properties: P) => strictObject(properties, { default: {} });

export const hooksSchema = reader(
  group({
    enabled: flag(false),
    token: optional(secret),
    tokens: Type.Array(namedToken, { default: [] }),
    path: changed(text({ default: "/hooks" }), normalizePath),
    /** A listener that serves only `path`: the one that a proxy publishes. */
    listen: optional(
      refined(
        changed(Type.String(), (given) => given.trim()),
        (given) => (parseListen(given) === undefined ? LISTEN_EXPECTED : undefined),
      ),
    ),
    maxBodyBytes: integer(1, BODY_BYTES_MAX, { default: BODY_BYTES_DEFAULT }),
    /** For all senders with valid credentials together; counted separately for status requests. */
    rateLimit: optional(rateLimit),
    /** True if `?token=` is accepted; it ends up in logs of proxies. */
    allowQueryToken: flag(true),
    /** True refuses unknown fields, and content types other than JSON. */
    strict: flag(false),
    presets: Type.Array(oneOfTexts(PRESETS), { default: [] }),
    /** Settings of the mapping that a preset brings, by the preset's name. */
    presetSettings: group(
      Object.fromEntries(PRESETS.map((name) => [name, optional(presetSettings)])) as Record<
        PresetName,
        TOptional<typeof presetSettings>
      >,
    ),
    mappings: Type.Array(mapping, { maxItems: 1000, default: [] }),
    /** Relative to the folder of the configuration file. */
    transformsDir: optional(text()),
    transformTimeoutMs: integer(10, 60_000, { default: 5000 }),
    /** Channels to try, in order, if a channel refuses the reply; each uses its `defaultTo`. */
    fallbackChannels: Type.Array(trimmed(), { maxItems: 8, default: [] }),
    allowedAgentIds: optional(texts()),
    /** Session keys that requests may choose; never the main session's or another agent's. */
    sessionKeys: group({
      allowFromRequest: flag(true),
      prefixes: Type.Array(text({ minLength: 1 }), { default: [] }),
      default: optional(text()),
    }),
    idempotencyHours: above0(24 * 30, { default: 24 }),
    queue: group({
      /** Maximum number of deliveries that wait or run. */
      max: integer(1, 1_000_000, { default: 10_000 }),
      /** Maximum of these for one mapping; absent: half. */
      maxPerMapping: optional(integer(1, 1_000_000)),
      maxAttempts: integer(1, 100, { default: 5 }),
      retentionDays: above0(3650, { default: 14 }),
      /** True if bodies are kept for inspection. */
      keepBodies: flag(false),
    }),
    callbacks: group({
      /** True if requests may name a `callbackUrl`. */
      allowFromRequest: flag(false),
      allowPrivateAddresses: flag(false),
      secret: optional(secret),
    }),
    mail: optional(mailSection),
  }),
);
export type HooksConfig = Parsed<typeof hooksSchema>;

/** Normalises to one slash in front, none at the end. */
function normalizePath(given: string): string {
  const bare = given.trim().replace(/^\/+|\/+$/g, "");
  return `/${bare}`;
}

/** The section `gateway`: settings for operators. */
export const gatewaySchema = reader(
  group({
    /** Guards the admin endpoints; separate from the hook token. */
    token: optional(secret),
    /** Addresses or CIDR ranges of proxies whose X-Forwarded-For is trusted. */
    trustedProxies: Type.Array(
      refined(Type.String(), (given) => (isNetwork(given) ? undefined : "expected an address or a CIDR range")),
      { default: [] },
    ),
  }),
);
export type GatewayConfig = Parsed<typeof gatewaySchema>;
