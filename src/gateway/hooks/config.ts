/** The section `hooks` of the configuration: who may call, what a call becomes, and what is kept of it. */
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

/** A question about a request. `at` is a path as templates have it: `headers.x-event`, `payload.action`. */
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

/** How many requests come in: a token bucket, which is full at the start. */
const rateLimit = refined(
  strictObject({
    perSecond: optional(above0(100_000)),
    perMinute: optional(above0(100_000)),
    /** Requests that may come at once; absent: as many as in a second, or in a minute. */
    burst: optional(integer(1, 1_000_000)),
  }),
  ({ perSecond, perMinute }) =>
    (perSecond === undefined) === (perMinute === undefined)
      ? "expected perSecond or perMinute, and only one of them"
      : undefined,
);
export type RateLimit = Output<typeof rateLimit>;

const matchFields = { path: optional(text()), source: optional(text()), when: optional(condition) };

/** `type/subtype`, and parameters that a header can hold. */
const CONTENT_TYPE = "^[\\w.+-]+/[\\w.+-]+(; ?[\\w-]+=[\\w.-]+)*$";
const RESPONSE_CHARS_MAX = 16_384;

/** What the sender hears where its request is taken, for senders that insist on a status or a body of their own. */
const response = refined(
  strictObject({
    status: integer(200, 204, { default: 200 }),
    /** A text as it is; anything else as JSON. */
    body: optional(Type.Unknown()),
    /** Absent: JSON, or plain text for a text. */
    contentType: optional(text({ pattern: CONTENT_TYPE, maxLength: 128, expected: 'a type such as "text/xml"' })),
  }),
  ({ status, body }) => {
    if (status === 204 && body !== undefined) return "status 204 has no body";
    const { length } = typeof body === "string" ? body : (JSON.stringify(body) ?? "");
    return length > RESPONSE_CHARS_MAX ? `expected a body of at most ${RESPONSE_CHARS_MAX} characters` : undefined;
  },
);
export type ResponseConfig = Output<typeof response>;

/** What a mapping can say that has no default. */
const optionalFields = {
  id: optional(trimmed({ maxLength: 128 })),
  name: optional(template),
  sessionKey: optional(template),
  messageTemplate: optional(template),
  textTemplate: optional(template),
  to: optional(template),
  /** Where a reply goes that its channel refuses, in order; absent: `hooks.fallbackChannels`. */
  fallbackChannels: optional(channelNames),
  model: optional(template),
  thinking: optional(template),
  timeoutSeconds: optional(integer(1, 86_400)),
  agentId: optional(text()),
  /** A list in the payload, of which every item becomes an action; templates call it `item`. */
  forEach: optional(text({ minLength: 1, maxLength: 512 })),
  /** What stays the same when a sender sends an item again: each such id is acted on once. */
  itemId: optional(template),
  transform: optional(strictObject({ module: trimmed(), export: optional(text()) })),
  auth: optional(signature),
  /**
   * Whether a body that came before is the same delivery, whatever id it comes with now. Absent: yes where the sender
   * signs the body alone and no two of its bodies are equal, see `signatures/index.ts`.
   */
  dedupeBody: optional(Type.Boolean()),
  /** Instead of 202, 200 or 204. */
  response: optional(response),
  /** Answers a provider's check of the address. */
  handshake: optional(oneOfTexts(["slack", "github", "discord", "meta", "microsoft"])),
  maxBodyBytes: optional(integer(1, BODY_BYTES_MAX)),
  /** Runs of this mapping that may run at once. */
  maxConcurrent: optional(integer(1, 256)),
  /** Runs of this mapping that may wait or run, instead of `hooks.queue.maxPerMapping`. */
  maxQueued: optional(integer(1, 1_000_000)),
  /** Beside `hooks.rateLimit`. */
  rateLimit: optional(rateLimit),
  callbackUrl: optional(url()),
};

const kind = (options: object = {}) => oneOfTexts(["wake", "agent"], options);
/** What stands for a value that is not there. */
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
    /** Names of the tools that runs may use. */
    tools: texts({ default: [] }),
    allowUnsafeExternalContent: flag(false),
  },
  { default: {} },
);
export const mappingSchema = reader(mapping);
export type MappingConfig = Parsed<typeof mappingSchema>;

/** What replaces settings of a preset's mapping; `secrets` are for the signatures that its sender makes. */
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
  /** Whether the preset's mapping takes events that the preset would leave out; see `presets/preset.ts`. */
  allEvents: optional(Type.Boolean()),
});

export const PRESETS = ["mail", "github", "gitlab", "stripe", "slack", "sentry", "alertmanager", "generic"] as const;
export type PresetName = (typeof PRESETS)[number];

/** A further token, for rotation or for one sender; `paths` limits where it counts. */
const namedToken = strictObject({
  id: text({ pattern: "^[\\w.-]{1,64}$", expected: "letters, digits, '.', '_' and '-', at most 64" }),
  token: secret,
  paths: optional(texts()),
  expiresAt: optional(moment()),
});

/** An object whose keys all have defaults. */
const group = <P extends TProperties>(properties: P) => strictObject(properties, { default: {} });

export const hooksSchema = reader(
  group({
    enabled: flag(false),
    token: optional(secret),
    tokens: Type.Array(namedToken, { default: [] }),
    path: changed(text({ default: "/hooks" }), normalizePath),
    /** A listener on which nothing but `path` exists: what a proxy publishes. */
    listen: optional(
      refined(
        changed(Type.String(), (given) => given.trim()),
        (given) => (parseListen(given) === undefined ? LISTEN_EXPECTED : undefined),
      ),
    ),
    maxBodyBytes: integer(1, BODY_BYTES_MAX, { default: BODY_BYTES_DEFAULT }),
    /** Of all senders whose credentials are good, together; and once more of those who ask how runs stand. */
    rateLimit: optional(rateLimit),
    /** Whether `?token=` counts; it ends up in logs of proxies. */
    allowQueryToken: flag(true),
    /** Unknown fields and other content types than JSON are refused. */
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
    /** Where replies go that their channel refuses, in order: to the `defaultTo` of each. */
    fallbackChannels: Type.Array(trimmed(), { maxItems: 8, default: [] }),
    allowedAgentIds: optional(texts()),
    /** Which session keys requests may choose; they never reach the main session or another agent's. */
    sessionKeys: group({
      allowFromRequest: flag(true),
      prefixes: Type.Array(text({ minLength: 1 }), { default: [] }),
      default: optional(text()),
    }),
    idempotencyHours: above0(24 * 30, { default: 24 }),
    queue: group({
      /** Deliveries that may wait or run. */
      max: integer(1, 1_000_000, { default: 10_000 }),
      /** Of those, how many may be one mapping's; absent: half of them. */
      maxPerMapping: optional(integer(1, 1_000_000)),
      maxAttempts: integer(1, 100, { default: 5 }),
      retentionDays: above0(3650, { default: 14 }),
      /** Whether bodies are kept for inspection. */
      keepBodies: flag(false),
    }),
    callbacks: group({
      /** Whether requests may name a `callbackUrl`. */
      allowFromRequest: flag(false),
      allowPrivateAddresses: flag(false),
      secret: optional(secret),
    }),
    mail: optional(mailSection),
  }),
);
export type HooksConfig = Parsed<typeof hooksSchema>;

/** One slash in front, none at the end. */
function normalizePath(given: string): string {
  const bare = given.trim().replace(/^\/+|\/+$/g, "");
  return `/${bare}`;
}

/** The section `gateway`: what operators use. */
export const gatewaySchema = reader(
  group({
    /** Guards the admin endpoints; never the hook token. */
    token: optional(secret),
    /** Addresses or CIDR ranges of proxies whose X-Forwarded-For counts. */
    trustedProxies: Type.Array(
      refined(Type.String(), (given) => (isNetwork(given) ? undefined : "expected an address or a CIDR range")),
      { default: [] },
    ),
  }),
);
export type GatewayConfig = Parsed<typeof gatewaySchema>;
