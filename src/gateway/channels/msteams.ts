/**
 * Microsoft Teams: proactive messages through the Bot Framework connector, with the app's own tokens.
 * https://learn.microsoft.com/azure/bot-service/rest-api/bot-framework-rest-connector-send-and-receive-messages
 */
import { Type } from "@sinclair/typebox";
import { httpUrl, type Parsed } from "../../base/schema.ts";
import { field, makeApi, textField, type Answer, type Api, type ApiCall, type Dialect } from "./api.ts";
import type { ChannelKind, SendOutcome, Target } from "./channel.ts";
import { channelSchema, readSecret, secret, secretFile } from "./config.ts";
import { openedBy, rememberConversations } from "./conversation.ts";
import { badRecipient, withoutPrefix } from "./recipient.ts";

const schema = channelSchema(
  {
    appId: Type.String({ pattern: "^[\\w-]{1,128}$", expected: "the app's id" }),
    appPassword: Type.Optional(secret),
    passwordFile: Type.Optional(secretFile),
    tenantId: Type.String({ pattern: "^[\\w.-]{1,128}$", expected: "a tenant's id or domain" }),
    /** The token endpoint's server. */
    loginUrl: httpUrl({ default: "https://login.microsoftonline.com" }),
  },
  ["appPassword", "passwordFile"],
);

const LIMIT = 7000; // a message may have about 28 kB
const SCOPE = "https://api.botframework.com/.default";
/** A token is renewed this long before it expires. */
const TOKEN_MARGIN_MS = 60_000;
/** The documentation recommends a retry, as for 429 and 502. */
const PRECONDITION_FAILED = 412;

const dialect: Dialect = {
  accepted: (body) => (typeof body === "object" ? { messageId: textField(body, "id") } : undefined),
  reason: (body) => textField(body, "error", "message") ?? textField(body, "message"),
};
const tokenDialect: Dialect = {
  accepted: (body) => (textField(body, "access_token") ? {} : undefined),
  reason: (body) => textField(body, "error_description") ?? textField(body, "error"),
};

export const msteams: ChannelKind<Parsed<typeof schema>> = {
  id: "msteams",
  aliases: ["teams"],
  schema,
  make: (settings, { fetch, folder, now }) => {
    const { appId, tenantId, loginUrl } = settings;
    const password = readSecret(settings.appPassword, { path: settings.passwordFile, folder });
    const baseUrl = settings.baseUrl ?? "https://smba.trafficmanager.net/teams";
    const api = makeApi({ label: "msteams", fetch, baseUrl, secrets: [password] });
    const login = makeApi({ label: "msteams", fetch, baseUrl: loginUrl, secrets: [password] });
    const tokens = makeTokens(login, { appId, password, tenantId, now });
    const post = (request: Omit<ApiCall, "headers">) => postWithToken(api, tokens, request);
    const open = rememberConversations(async (person, signal) => {
      const json = {
        bot: { id: `28:${appId}` },
        members: [{ id: person }],
        isGroup: false,
        tenantId,
        channelData: { tenant: { id: tenantId } },
      };
      return openedBy(await post({ path: "/v3/conversations", json, signal }));
    });
    return {
      id: "msteams",
      chunkLimit: Math.min(settings.textChunkLimit ?? 4000, LIMIT),
      chunkUnit: "utf16",
      dedupeMs: 0,
      spacingMs: settings.spacingMs ?? 0,
      ...(settings.defaultTo ? { defaultTo: settings.defaultTo } : {}),
      parseTarget,
      send: async ({ target, text, signal }) => {
        const [, kind, id = ""] = /^(conversation|user):(.*)$/.exec(target.to) ?? [];
        const conversation = kind === "user" ? await open(id, signal) : { kind: "opened" as const, id };
        if (conversation.kind !== "opened") return conversation;
        const path = `/v3/conversations/${encodeURIComponent(conversation.id)}/activities`;
        return post({ path, json: { type: "message", text, textFormat: "markdown" }, signal });
      },
      check: async (signal) => {
        const token = await tokens.get(signal);
        return token.kind === "token" ? { ok: true } : { ok: false, reason: token.reason };
      },
    };
  },
};

type Token = { readonly kind: "token"; readonly value: string } | Exclude<SendOutcome, { kind: "sent" }>;

interface Tokens {
  get(signal: AbortSignal): Promise<Token>;
  /** Forgets a refused token. */
  drop(value: string): void;
}

interface TokenSettings {
  readonly appId: string;
  readonly password: string;
  readonly tenantId: string;
  readonly now: () => number;
}

/** Client credentials (RFC 6749, 4.4): requested once, kept until shortly before they expire. */
function makeTokens(api: Api, { appId, password, tenantId, now }: TokenSettings): Tokens {
  let kept: { value: string; untilMs: number } | undefined;
  let asking: Promise<Token> | undefined;
  const ask = async (signal: AbortSignal): Promise<Token> => {
    const form = { grant_type: "client_credentials", client_id: appId, client_secret: password, scope: SCOPE };
    const answer = await api.call({ path: `/${tenantId}/oauth2/v2.0/token`, form, signal });
    const outcome = api.outcome(answer, tokenDialect);
    // no message has left yet: any failure may be retried
    if (outcome.kind === "unknown") return { kind: "retry", reason: outcome.reason };
    // a wrong app, tenant or password: some come with status 400
    if (outcome.kind === "failed") return { kind: "refused", reason: outcome.reason };
    if (outcome.kind !== "sent") return outcome;
    const body = answer.kind === "answered" ? answer.body : undefined;
    const value = textField(body, "access_token") ?? "";
    if (!/^[\x21-\x7e]+$/.test(value))
      return { kind: "failed", reason: api.say("the token contains characters that a header cannot hold") };
    const lifeMs = Number(field(body, "expires_in") ?? 0) * 1000 - TOKEN_MARGIN_MS;
    kept = { value, untilMs: now() + Math.max(0, lifeMs) };
    return { kind: "token", value };
  };
  return {
    get: (signal) => {
      if (kept && kept.untilMs > now()) return Promise.resolve({ kind: "token", value: kept.value });
      asking ??= ask(signal).finally(() => (asking = undefined));
      return asking;
    },
    drop: (value) => {
      if (kept?.value === value) kept = undefined;
    },
  };
}

/** Replaces a token that expired early, once: a request refused for its token did nothing. */
async function postWithToken(api: Api, tokens: Tokens, request: Omit<ApiCall, "headers">): Promise<SendOutcome> {
  for (let attempt = 0; ; attempt++) {
    const token = await tokens.get(request.signal);
    if (token.kind !== "token") return token;
    const answer = await api.call({ ...request, headers: { authorization: `Bearer ${token.value}` } });
    if (answer.kind === "answered" && answer.status === 401) {
      tokens.drop(token.value);
      if (attempt === 0) continue;
    }
    return readOutcome(api, answer);
  }
}

function readOutcome(api: Api, answer: Answer): SendOutcome {
  const outcome = api.outcome(answer, dialect);
  const isTemporary = answer.kind === "answered" && answer.status === PRECONDITION_FAILED;
  return isTemporary && "reason" in outcome ? { kind: "retry", reason: outcome.reason } : outcome;
}

/** `conversation:<id>`, `user:<id>`, or a bare conversation such as `19:…@thread.tacv2` or `a:…`. */
function parseTarget(given: string): Target {
  const text = withoutPrefix(given, ["msteams", "teams"]);
  const to = /^(19|a):/.test(text) ? `conversation:${text}` : text;
  if (!/^(conversation|user):[\w:@.;=|+/-]{3,512}$/.test(to)) {
    throw badRecipient("msteams", given, "'conversation:<id>', 'user:<id>' or '19:…@thread.tacv2'");
  }
  return { channel: "msteams", to };
}
