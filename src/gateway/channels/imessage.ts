/**
 * iMessage: a bridge on a Mac that answers the JSON-RPC method `send` over HTTP, with the parameters of `imsg rpc`.
 * https://imsg.sh/rpc
 */
import { Type } from "@sinclair/typebox";
import { httpUrl, oneOfTexts, type Parsed } from "../../base/schema.ts";
import { makeApi, textField, type Dialect } from "./api.ts";
import type { ChannelKind, SendOutcome, Target } from "./channel.ts";
import { channelSchema, secret } from "./config.ts";
import { callRpc, isRefusedCall, rpcError } from "./json-rpc.ts";
import { readMarkdown } from "./formatted.ts";
import { badRecipient, withoutPrefix } from "./recipient.ts";

const schema = channelSchema({
  /** URL of the bridge, with its path. */
  baseUrl: httpUrl(),
  token: Type.Optional(secret),
  service: oneOfTexts(["auto", "imessage", "sms"], { default: "auto" }),
  /** Country of numbers without a country code. */
  region: Type.String({ pattern: "^[A-Z]{2}$", expected: "a country such as US", default: "US" }),
});

const dialect: Dialect = {
  accepted: (body) => {
    const messageId = textField(body, "result", "guid") ?? textField(body, "result", "id");
    return textField(body, "jsonrpc") === "2.0" ? { messageId } : undefined;
  },
  reason: (body) => textField(body, "error", "message"),
  isRefusal: (status) => status === 403, // a proxy may answer it for a wrong token
};

export const imessage: ChannelKind<Parsed<typeof schema>> = {
  id: "imessage",
  aliases: ["imsg"],
  schema,
  make: (settings, { fetch }) => {
    const { token } = settings;
    const headers = token ? { authorization: `Bearer ${token}` } : {};
    const { baseUrl } = settings;
    const api = makeApi({ label: "imessage", fetch, baseUrl, headers, secrets: token ? [token] : [] });
    return {
      id: "imessage",
      chunkLimit: settings.textChunkLimit ?? 4000,
      chunkUnit: "utf16",
      dedupeMs: 0,
      spacingMs: settings.spacingMs ?? 0,
      ...(settings.defaultTo ? { defaultTo: settings.defaultTo } : {}),
      parseTarget,
      send: async ({ target, text, key, signal }): Promise<SendOutcome> => {
        const params = { ...recipientOf(target.to, settings), text: readMarkdown(text, { hasLinks: false }).text };
        const answer = await callRpc(api, { path: "", method: "send", params, id: key, signal });
        const error = answer.kind === "answered" && answer.status < 300 ? rpcError(answer.body) : undefined;
        if (!error) return api.outcome(answer, dialect);
        return { kind: isRefusedCall(error.code) ? "failed" : "unknown", reason: api.say(error.message) };
      },
      check: async (signal) => {
        const params = { limit: 1 };
        const answer = await callRpc(api, { path: "", method: "chats.list", params, id: "check", signal });
        const accepted = (body: unknown) => (rpcError(body) ? undefined : dialect.accepted(body));
        return api.health(answer, { ...dialect, accepted });
      },
    };
  },
};

function recipientOf(to: string, { service, region }: { service: string; region: string }): Record<string, unknown> {
  const [, kind, id = ""] = /^(chat_id|chat_guid|chat_identifier):(.+)$/.exec(to) ?? [];
  if (kind === "chat_id") return { chat_id: Number(id) };
  if (kind) return { [kind]: id };
  const [, asked, handle] = /^(imessage|sms):(.+)$/.exec(to) ?? [];
  return { to: handle ?? to, service: asked ?? service, region };
}

/** A phone number or e-mail address, optionally with `imessage:` or `sms:`; or `chat_id:` and the like. */
function parseTarget(given: string): Target {
  const text = withoutPrefix(given, ["imsg"]);
  const [, kind = "", id = ""] = /^(chat_id|chat_guid|chat_identifier):\s*(.*)$/i.exec(text) ?? [];
  const isChat = kind.toLowerCase() === "chat_id" ? /^\d{1,15}$/.test(id) : /^[^\s\p{Cc}]{1,256}$/u.test(id);
  if (kind && isChat) return { channel: "imessage", to: `${kind.toLowerCase()}:${id}` };
  const [, service = "", bare = text] = /^(imessage|sms):(.*)$/i.exec(text) ?? [];
  const number = bare.replace(/[\s().-]/g, "");
  // the bridge interprets a number without `+`: its first digits need not be a country code
  const isNumber = /^(\+[1-9]\d{6,14}|\d{7,15})$/.test(number);
  const handle = isNumber ? number : bare.trim().toLowerCase();
  if (!isNumber && !/^[^\s@:]{1,64}@[^\s@:]{1,190}$/.test(handle)) {
    throw badRecipient("imessage", given, "a phone number, an e-mail address or 'chat_id:<n>'");
  }
  return { channel: "imessage", to: service ? `${service.toLowerCase()}:${handle}` : handle };
}
