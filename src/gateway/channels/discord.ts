/**
 * Discord: REST API v10, messages to channels and, through a conversation, to users. Repeats of a nonce are dropped.
 * https://discord.com/developers/docs/resources/message#create-message
 */
import { createHash } from "node:crypto";
import { Type } from "@sinclair/typebox";
import type { Parsed } from "../../base/schema.ts";
import { makeApi, secondsField, textField, type Dialect } from "./api.ts";
import type { ChannelKind, Target } from "./channel.ts";
import { channelSchema, readSecret, secretFile, secretOf } from "./config.ts";
import { openedBy, rememberConversations } from "./conversation.ts";
import { badRecipient, withoutPrefix } from "./recipient.ts";

const schema = channelSchema(
  {
    token: Type.Optional(secretOf((text) => text.replace(/^Bot\s+/i, ""))),
    tokenFile: Type.Optional(secretFile),
  },
  ["token", "tokenFile"],
);

const LIMIT = 2000;
const NONCE_CHARS = 25;
/** Discord compares a nonce with "the past few minutes". */
const DEDUPE_MS = 120_000;

const dialect: Dialect = {
  accepted: (body) => {
    const messageId = textField(body, "id");
    return messageId === undefined ? undefined : { messageId };
  },
  reason: (body) => {
    const code = textField(body, "code");
    const words = textField(body, "message");
    return code && code !== "0" ? `${words} (${code})` : words;
  },
  retryAfterMs: (body) => secondsField(body, "retry_after"),
};

export const discord: ChannelKind<Parsed<typeof schema>> = {
  id: "discord",
  aliases: [],
  schema,
  make: (settings, { fetch, folder }) => {
    const token = readSecret(settings.token, { path: settings.tokenFile, folder });
    const api = makeApi({
      label: "discord",
      fetch,
      baseUrl: settings.baseUrl ?? "https://discord.com/api/v10",
      // the API refuses user agents of any other form
      headers: { authorization: `Bot ${token}`, "user-agent": "DiscordBot (hearth, 1.0)" },
      secrets: [token],
    });
    const open = rememberConversations(async (user, signal) =>
      openedBy(
        api.outcome(await api.call({ path: "/users/@me/channels", json: { recipient_id: user }, signal }), dialect),
      ),
    );
    return {
      id: "discord",
      chunkLimit: Math.min(settings.textChunkLimit ?? LIMIT, LIMIT),
      chunkUnit: "utf16",
      dedupeMs: DEDUPE_MS,
      spacingMs: settings.spacingMs ?? 1000, // five messages in five seconds
      ...(settings.defaultTo ? { defaultTo: settings.defaultTo } : {}),
      parseTarget,
      send: async ({ target, text, key, signal }) => {
        const [kind, id = ""] = target.to.split(":");
        const channel = kind === "user" ? await open(id, signal) : { kind: "opened" as const, id };
        if (channel.kind !== "opened") return channel;
        const json = {
          content: text,
          nonce: nonceOf(key),
          enforce_nonce: true,
          allowed_mentions: { parse: [] }, // a model's text must not notify anyone
        };
        return api.outcome(await api.call({ path: `/channels/${channel.id}/messages`, json, signal }), dialect);
      },
      check: async (signal) => api.health(await api.call({ method: "GET", path: "/users/@me", signal }), dialect),
    };
  },
};

const nonceOf = (key: string): string => createHash("sha256").update(key).digest("base64url").slice(0, NONCE_CHARS);

/**
 * `channel:<id>`, `user:<id>`, `<#id>`, `<@id>`, `discord:<id>` (a user). Refuses a bare number, which could be either.
 */
function parseTarget(given: string): Target {
  const text = given
    .trim()
    .replace(/^<@!?(\d+)>$/, "user:$1")
    .replace(/^<#(\d+)>$/, "channel:$1")
    .replace(/^discord:(\d+)$/i, "user:$1");
  const to = withoutPrefix(text, ["discord"]);
  if (!/^(channel|user):\d{5,21}$/.test(to)) {
    throw badRecipient("discord", given, "'channel:<id>' or 'user:<id>', with an id of 5 to 21 digits");
  }
  return { channel: "discord", to };
}
