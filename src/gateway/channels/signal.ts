/** Signal: the JSON-RPC endpoint of a signal-cli daemon. signal-cli-jsonrpc(5) */
import { Type } from "@sinclair/typebox";
import type { Parsed } from "../../base/schema.ts";
import { field, makeApi, textField, type Dialect } from "./api.ts";
import type { ChannelKind, SendOutcome, Target } from "./channel.ts";
import { channelSchema, secret } from "./config.ts";
import { readMarkdown, type Style } from "./formatted.ts";
import { callRpc, isRefusedCall, rpcError } from "./json-rpc.ts";
import { badRecipient, phoneDigits, withoutPrefix } from "./recipient.ts";

const schema = channelSchema({
  /** The sender's number, for a daemon with several accounts. */
  account: Type.Optional(Type.String({ pattern: "^\\+[1-9]\\d{6,14}$", expected: "a phone number such as +15550100" })),
  /** For a proxy in front of the daemon, which has no authentication of its own. */
  token: Type.Optional(secret),
});

const PATH = "/api/v1/rpc";
/** The daemon's own codes: bad arguments, an untrusted key, a rate limit, a refused captcha. */
const CODES = { user: -1, untrustedKey: -4, rateLimit: -5, captcha: -6 };

const dialect: Dialect = {
  accepted: (body) => {
    const messageId = textField(body, "result", "timestamp");
    return messageId === undefined ? undefined : { messageId };
  },
  reason: (body) => textField(body, "error", "message"),
  isRefusal: (status) => status === 403, // a proxy may answer it for a wrong token
};

export const signal: ChannelKind<Parsed<typeof schema>> = {
  id: "signal",
  aliases: [],
  schema,
  make: (settings, { fetch }) => {
    const baseUrl = settings.baseUrl ?? "http://127.0.0.1:8080";
    const { token } = settings;
    const headers = token ? { authorization: `Bearer ${token}` } : {};
    const api = makeApi({ label: "signal", fetch, baseUrl, headers, secrets: token ? [token] : [] });
    return {
      id: "signal",
      chunkLimit: settings.textChunkLimit ?? 4000,
      chunkUnit: "utf16",
      dedupeMs: 0,
      spacingMs: settings.spacingMs ?? 0,
      ...(settings.defaultTo ? { defaultTo: settings.defaultTo } : {}),
      parseTarget,
      send: async ({ target, text, key, signal: stop }): Promise<SendOutcome> => {
        const params = {
          ...(settings.account ? { account: settings.account } : {}),
          ...recipientOf(target.to),
          ...styledMessage(text),
        };
        const answer = await callRpc(api, { path: PATH, method: "send", params, id: key, signal: stop });
        if (answer.kind !== "answered" || answer.status >= 300) return api.outcome(answer, dialect);
        if (answer.status === 201) return { kind: "sent" }; // success without a body
        const error = rpcError(answer.body);
        if (!error) return refusedRecipient(answer.body, api.say) ?? api.outcome(answer, dialect);
        const reason = api.say(error.message);
        if (error.code === CODES.rateLimit) return { kind: "retry", reason };
        const isRefused = Object.values(CODES).includes(error.code) || isRefusedCall(error.code);
        return { kind: isRefused ? "failed" : "unknown", reason };
      },
      check: async (stop) => {
        const answer = await api.call({ method: "GET", path: "/api/v1/check", signal: stop });
        return api.health(answer, { ...dialect, accepted: () => ({}) });
      },
    };
  },
};

const STYLES: Readonly<Partial<Record<Style, string>>> = {
  bold: "BOLD",
  italic: "ITALIC",
  strike: "STRIKETHROUGH",
  code: "MONOSPACE",
  pre: "MONOSPACE",
};

/** A text in Markdown as text and `start:length:STYLE`, in UTF-16 units. */
function styledMessage(markdown: string): { message: string; textStyle?: string[] } {
  const { text: message, spans } = readMarkdown(markdown, { hasLinks: false });
  const textStyle = spans.flatMap(({ style, start, end }) =>
    STYLES[style] ? [`${start}:${end - start}:${STYLES[style]}`] : [],
  );
  return textStyle.length === 0 ? { message } : { message, textStyle };
}

/** The daemon's error for a single recipient in a successful call. A group counts as sent. */
function refusedRecipient(body: unknown, say: (text: string) => string): SendOutcome | undefined {
  const results = field(body, "result", "results");
  if (!Array.isArray(results) || results.length !== 1) return undefined;
  const type = textField(results[0], "type");
  if (type === undefined || type === "SUCCESS") return undefined;
  const kinds: Readonly<Record<string, "retry" | "unknown">> = {
    RATE_LIMIT_FAILURE: "retry",
    NETWORK_FAILURE: "unknown", // the failure may be before or after the service received it
  };
  return { kind: kinds[type] ?? "failed", reason: say(type) };
}

function recipientOf(to: string): Record<string, unknown> {
  if (to.startsWith("group:")) return { groupId: to.slice("group:".length) };
  if (to.startsWith("username:")) return { username: [to.slice("username:".length)] };
  return { recipient: [to] };
}

/** A phone number, an account's UUID, `group:<id>`, `username:<name>` or `u:<name>`. */
function parseTarget(given: string): Target {
  const text = withoutPrefix(given, ["signal"]).replace(/^u:/i, "username:");
  const digits = phoneDigits(text);
  if (digits !== undefined) return { channel: "signal", to: `+${digits}` };
  const isOther =
    /^group:[A-Za-z0-9+/_=-]{8,128}$/.test(text) ||
    /^username:[\w.]{3,64}$/.test(text) ||
    /^[0-9a-f]{8}(-[0-9a-f]{4}){3}-[0-9a-f]{12}$/i.test(text);
  if (!isOther) throw badRecipient("signal", given, "a phone number, 'group:<id>' or 'username:<name>'");
  return { channel: "signal", to: text };
}
