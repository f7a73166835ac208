/** WhatsApp: Cloud API of the Business Platform. https://developers.facebook.com/docs/whatsapp/cloud-api/messages */
import { Type } from "@sinclair/typebox";
import type { Parsed } from "../../base/schema.ts";
import { field, makeApi, textField, type Answer, type Dialect } from "./api.ts";
import type { ChannelKind, SendOutcome, Target } from "./channel.ts";
import { channelSchema, readSecret, secret, secretFile } from "./config.ts";
import { CHAT_MARKS, readMarkdown, withMarks } from "./formatted.ts";
import { badRecipient, phoneDigits, withoutPrefix } from "./recipient.ts";

const schema = channelSchema(
  {
    /** The sender's id from the platform's console; not the phone number. */
    phoneNumberId: Type.String({ pattern: "^\\d{5,32}$", expected: "the id of a phone number: digits" }),
    accessToken: Type.Optional(secret),
    tokenFile: Type.Optional(secretFile),
    apiVersion: Type.String({ pattern: "^v\\d{1,3}\\.\\d$", expected: "a version such as v23.0", default: "v23.0" }),
  },
  ["accessToken", "tokenFile"],
);

const LIMIT = 4096;
/** Rate limits of the app, the account, the number and the pair; they also come with status 400. */
const LIMIT_CODES = new Set([4, 80007, 130429, 131048, 131056]);
/**
 * An expired token and missing permissions, from 200 to 299 too; they come with status 400, 401 or 403.
 * https://developers.facebook.com/docs/whatsapp/cloud-api/support/error-codes
 */
const REFUSAL_CODES = new Set([10, 190, 131005]);

const codeOf = (body: unknown): number => Number(textField(body, "error", "code"));

const dialect: Dialect = {
  accepted: (body) => {
    const messageId = textField(body, "messages", 0, "id");
    return messageId === undefined ? undefined : { messageId };
  },
  reason: (body) => {
    const words = textField(body, "error", "message");
    const details = textField(body, "error", "error_data", "details");
    return details && details !== words ? `${words}: ${details}` : words;
  },
  isRefusal: (_, body) => REFUSAL_CODES.has(codeOf(body)) || (codeOf(body) >= 200 && codeOf(body) < 300),
};

export const whatsapp: ChannelKind<Parsed<typeof schema>> = {
  id: "whatsapp",
  aliases: ["wa"],
  schema,
  make: (settings, { fetch, folder }) => {
    const token = readSecret(settings.accessToken, { path: settings.tokenFile, folder });
    const baseUrl = settings.baseUrl ?? "https://graph.facebook.com";
    const headers = { authorization: `Bearer ${token}` };
    const api = makeApi({ label: "whatsapp", fetch, baseUrl, headers, secrets: [token] });
    const number = `/${settings.apiVersion}/${settings.phoneNumberId}`;
    const outcome = (answer: Answer): SendOutcome => {
      const read = api.outcome(answer, dialect);
      if (read.kind !== "failed" || answer.kind !== "answered") return read;
      const isTemporary = field(answer.body, "error", "is_transient") === true || LIMIT_CODES.has(codeOf(answer.body));
      return isTemporary ? { kind: "retry", reason: read.reason } : read;
    };
    return {
      id: "whatsapp",
      chunkLimit: Math.min(settings.textChunkLimit ?? 4000, LIMIT),
      chunkUnit: "utf16",
      dedupeMs: 0,
      spacingMs: settings.spacingMs ?? 0,
      ...(settings.defaultTo ? { defaultTo: settings.defaultTo } : {}),
      parseTarget,
      send: async ({ target, text, signal }) => {
        const json = {
          messaging_product: "whatsapp",
          recipient_type: "individual",
          to: target.to.replace("+", ""),
          type: "text",
          text: { preview_url: false, body: withWhatsAppMarks(text) },
        };
        return outcome(await api.call({ path: `${number}/messages`, json, signal }));
      },
      check: async (signal) =>
        api.health(await api.call({ method: "GET", path: `${number}?fields=id`, signal }), {
          ...dialect,
          accepted: (body) => (textField(body, "id") ? {} : undefined),
        }),
    };
  },
};

/** A text in Markdown with the platform's own marks; unchanged if they make it too long. */
function withWhatsAppMarks(markdown: string): string {
  const text = withMarks(readMarkdown(markdown, { hasLinks: false }), { of: ({ style }) => CHAT_MARKS[style] });
  return text.length > LIMIT ? markdown : text;
}

/** A phone number with its country code, also as `…@s.whatsapp.net`. The API has no groups. */
function parseTarget(given: string): Target {
  const text = withoutPrefix(given, ["whatsapp", "wa"]).replace(/@(s\.whatsapp\.net|c\.us)$/i, "");
  const digits = phoneDigits(text);
  if (digits === undefined) throw badRecipient("whatsapp", given, "a phone number with its country, such as +15550100");
  return { channel: "whatsapp", to: `+${digits}` };
}
