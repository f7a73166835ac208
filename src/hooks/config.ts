/** The section `hooks` of the configuration: who may call, what a call becomes, and what is kept of it. */
import { z } from "zod";
import { isNetwork } from "./ingress/address.ts";
import { LISTEN_EXPECTED, parseListen } from "./listen.ts";
import { mailSchema } from "./mail/config.ts";

const BODY_BYTES_DEFAULT = 262_144;
const BODY_BYTES_MAX = 32 * 1024 * 1024;

/** Where something comes from: an environment variable is already put in by `${NAME}`. */
const secret = z.string().trim().min(1);
/** With an end, for the old one of two while a sender changes over. */
const expiringSecret = z.union([
  secret.transform((value) => ({ value, expiresAt: undefined })),
  z.strictObject({ value: secret, expiresAt: z.iso.datetime().optional() }),
]);
const secrets = z.union([expiringSecret.transform((value) => [value]), z.array(expiringSecret).min(1).max(8)]);
const wakeMode = z.enum(["now", "next-heartbeat"]);
/** Absent: the scheme's own, mostly five minutes. */
const tolerance = z.int().min(1).max(86_400).optional();

/** How a sender proves itself on one mapping, instead of by the hook token. */
const signature = z.discriminatedUnion("scheme", [
  z.strictObject({
    scheme: z.enum(["standard-webhooks", "svix", "stripe", "slack", "linear", "discord", "sentry"]),
    secrets,
    toleranceSeconds: tolerance,
  }),
  z.strictObject({ scheme: z.enum(["github", "gitea", "gitlab", "shopify"]), secrets }),
  z.strictObject({
    scheme: z.literal("hmac"),
    secrets,
    header: z.string().min(1),
    prefix: z.string().default(""),
    algorithm: z.enum(["sha1", "sha256", "sha384", "sha512"]).default("sha256"),
    encoding: z.enum(["hex", "base64", "base64url"]).default("hex"),
    /** What is signed: text with `{id}`, `{timestamp}`, `{body}`, `{url}`, `{method}`. */
    signedContent: z.string().default("{body}"),
    idHeader: z.string().optional(),
    timestampHeader: z.string().optional(),
    timestampUnit: z.enum(["s", "ms"]).default("s"),
    toleranceSeconds: tolerance,
  }),
]);
export type SignatureConfig = z.output<typeof signature>;

/** Text with values in double braces; see `mappings/template.ts`. */
const template = z.string().max(65_536);
const scalar = z.union([z.string(), z.number(), z.boolean(), z.null()]);

/** A question about a request. `at` is a path as templates have it: `headers.x-event`, `payload.action`. */
const test = z.strictObject({
  at: z.string().min(1),
  equals: scalar.optional(),
  in: z.array(scalar).optional(),
  matches: z.string().max(512).optional(),
  exists: z.boolean().optional(),
});
export type ConditionTest = z.output<typeof test>;
export type Condition =
  | ConditionTest
  | { readonly all: readonly Condition[] }
  | { readonly any: readonly Condition[] }
  | { readonly not: Condition };
const condition: z.ZodType<Condition> = z.lazy(() =>
  z.union([
    test,
    z.strictObject({ all: z.array(condition) }),
    z.strictObject({ any: z.array(condition) }),
    z.strictObject({ not: condition }),
  ]),
);

const channelNames = z.array(z.string().trim().min(1)).max(8);

/** How many requests come in: a token bucket, which is full at the start. */
const rateLimit = z
  .strictObject({
    perSecond: z.number().positive().max(100_000).optional(),
    perMinute: z.number().positive().max(100_000).optional(),
    /** Requests that may come at once; absent: as many as in a second, or in a minute. */
    burst: z.int().positive().max(1_000_000).optional(),
  })
  .refine(
    ({ perSecond, perMinute }) => (perSecond === undefined) !== (perMinute === undefined),
    "expected perSecond or perMinute, and only one of them",
  );
export type RateLimit = z.output<typeof rateLimit>;

/** What a mapping can say, without defaults. */
const mappingFields = {
  id: z.string().trim().min(1).max(128).optional(),
  match: z.strictObject({ path: z.string().optional(), source: z.string().optional(), when: condition.optional() }),
  action: z.enum(["wake", "agent"]),
  wakeMode,
  name: template.optional(),
  sessionKey: template.optional(),
  messageTemplate: template.optional(),
  textTemplate: template.optional(),
  /** What stands for a value that is not there. */
  missing: z.enum(["empty", "keep", "error"]),
  deliver: z.boolean(),
  channel: z.string(),
  to: template.optional(),
  /** Where a reply goes that its channel refuses, in order; absent: `hooks.fallbackChannels`. */
  fallbackChannels: channelNames.optional(),
  model: template.optional(),
  thinking: template.optional(),
  timeoutSeconds: z.int().positive().max(86_400).optional(),
  agentId: z.string().optional(),
  /** Names of the tools that runs may use. */
  tools: z.array(z.string()),
  /** A list in the payload, of which every item becomes an action; templates call it `item`. */
  forEach: z.string().min(1).max(512).optional(),
  /** What stays the same when a sender sends an item again: each such id is acted on once. */
  itemId: template.optional(),
  transform: z.strictObject({ module: z.string().trim().min(1), export: z.string().optional() }).optional(),
  allowUnsafeExternalContent: z.boolean(),
  auth: signature.optional(),
  /**
   * Whether a body that came before is the same delivery, whatever id it comes with now. Absent: yes where the sender
   * signs the body alone and no two of its bodies are equal, see `signatures/index.ts`.
   */
  dedupeBody: z.boolean().optional(),
  /** Answers a provider's check of the address. */
  handshake: z.enum(["slack", "github", "meta", "microsoft"]).optional(),
  maxBodyBytes: z.int().positive().max(BODY_BYTES_MAX).optional(),
  /** Runs of this mapping that may run at once. */
  maxConcurrent: z.int().positive().max(256).optional(),
  /** Runs of this mapping that may wait or run, instead of `hooks.queue.maxPerMapping`. */
  maxQueued: z.int().positive().max(1_000_000).optional(),
  /** Beside `hooks.rateLimit`. */
  rateLimit: rateLimit.optional(),
  callbackUrl: z.url().optional(),
};

export const mappingSchema = z.strictObject({
  ...mappingFields,
  match: mappingFields.match.prefault({}),
  action: mappingFields.action.default("agent"),
  wakeMode: mappingFields.wakeMode.default("now"),
  missing: mappingFields.missing.default("empty"),
  deliver: mappingFields.deliver.default(true),
  channel: mappingFields.channel.default("last"),
  tools: mappingFields.tools.default([]),
  allowUnsafeExternalContent: mappingFields.allowUnsafeExternalContent.default(false),
});
export type MappingConfig = z.output<typeof mappingSchema>;

/** What replaces settings of a preset's mapping; `secrets` are for the signatures that its sender makes. */
const presetSettings = z.strictObject({ ...mappingFields, secrets }).partial();

export const PRESETS = ["mail", "github", "gitlab", "stripe", "slack", "sentry", "alertmanager", "generic"] as const;
export type PresetName = (typeof PRESETS)[number];

/** A further token, for rotation or for one sender; `paths` limits where it counts. */
const namedToken = z.strictObject({
  id: z.string().regex(/^[\w.-]{1,64}$/),
  token: secret,
  paths: z.array(z.string()).optional(),
  expiresAt: z.iso.datetime().optional(),
});

export const hooksSchema = z.strictObject({
  enabled: z.boolean().default(false),
  token: secret.optional(),
  tokens: z.array(namedToken).default([]),
  path: z.string().default("/hooks").transform(normalizePath),
  /** A listener on which nothing but `path` exists: what a proxy publishes. */
  listen: z
    .string()
    .trim()
    .refine((text) => parseListen(text) !== undefined, LISTEN_EXPECTED)
    .optional(),
  maxBodyBytes: z.int().positive().max(BODY_BYTES_MAX).default(BODY_BYTES_DEFAULT),
  /** Of all senders whose credentials are good, together; and once more of those who ask how runs stand. */
  rateLimit: rateLimit.optional(),
  /** Whether `?token=` counts; it ends up in logs of proxies. */
  allowQueryToken: z.boolean().default(true),
  /** Unknown fields and other content types than JSON are refused. */
  strict: z.boolean().default(false),
  presets: z.array(z.enum(PRESETS)).default([]),
  /** Settings of the mapping that a preset brings, by the preset's name. */
  presetSettings: z.partialRecord(z.enum(PRESETS), presetSettings).default({}),
  mappings: z.array(mappingSchema).max(1000).default([]),
  /** Relative to the folder of the configuration file. */
  transformsDir: z.string().optional(),
  transformTimeoutMs: z.int().min(10).max(60_000).default(5000),
  /** Where replies go that their channel refuses, in order: to the `defaultTo` of each. */
  fallbackChannels: channelNames.default([]),
  allowedAgentIds: z.array(z.string()).optional(),
  /** Which session keys requests may choose; they never reach the main session or another agent's. */
  sessionKeys: z
    .strictObject({
      allowFromRequest: z.boolean().default(true),
      prefixes: z.array(z.string().min(1)).default([]),
      default: z.string().optional(),
    })
    .prefault({}),
  idempotencyHours: z
    .number()
    .positive()
    .max(24 * 30)
    .default(24),
  queue: z
    .strictObject({
      /** Deliveries that may wait or run. */
      max: z.int().positive().max(1_000_000).default(10_000),
      /** Of those, how many may be one mapping's; absent: half of them. */
      maxPerMapping: z.int().positive().max(1_000_000).optional(),
      maxAttempts: z.int().min(1).max(100).default(5),
      retentionDays: z.number().positive().max(3650).default(14),
      /** Whether bodies are kept for inspection and replay with another mapping. */
      keepBodies: z.boolean().default(false),
    })
    .prefault({}),
  callbacks: z
    .strictObject({
      /** Whether requests may name a `callbackUrl`. */
      allowFromRequest: z.boolean().default(false),
      allowPrivateAddresses: z.boolean().default(false),
      secret: secret.optional(),
    })
    .prefault({}),
  mail: mailSchema.optional(),
});
export type HooksConfig = z.output<typeof hooksSchema>;

/** One slash in front, none at the end. */
function normalizePath(text: string): string {
  const bare = text.trim().replace(/^\/+|\/+$/g, "");
  return `/${bare}`;
}

/** The section `gateway`: what operators use. */
export const gatewaySchema = z.strictObject({
  /** Guards the admin endpoints; never the hook token. */
  token: secret.optional(),
  /** Addresses or CIDR ranges of proxies whose X-Forwarded-For counts. */
  trustedProxies: z.array(z.string().refine(isNetwork, "expected an address or a CIDR range")).default([]),
});
export type GatewayConfig = z.output<typeof gatewaySchema>;
