/** Slack: Web API, `chat.postMessage`. https://docs.slack.dev/reference/methods/chat.postMessage */
import type { Parsed } from "../../base/schema.ts";
import { field, makeApi, textField, type Answer, type Dialect } from "./api.ts";
import type { ChannelKind, SendOutcome, Target } from "./channel.ts";
import { botSchema, readSecret } from "./config.ts";
import { openedBy, rememberConversations } from "./conversation.ts";
import { CHAT_MARKS, readMarkdown, withMarks } from "./formatted.ts";
import { badRecipient, withoutPrefix } from "./recipient.ts";

const LIMIT = 4000; // "ideally under"; from 40,000 on texts are cut

/** Errors come with status 200. These mean: not taken, retry later. */
const TEMPORARY = new Set([
  "ratelimited",
  "rate_limited",
  "service_unavailable",
  "request_timeout",
  "team_added_to_org",
]);
/** "It's possible some aspect of the operation succeeded before the error was raised." */
const UNCERTAIN = new Set(["fatal_error", "internal_error"]);
/** Our token is no longer valid. Others, such as `missing_scope`, may concern one recipient only. */
const REFUSED = new Set(["not_authed", "invalid_auth", "account_inactive", "token_expired", "token_revoked"]);

const isOk = (body: unknown): boolean => field(body, "ok") === true;

const message: Dialect = {
  accepted: (body) => (isOk(body) ? { messageId: textField(body, "ts") } : undefined),
  reason: (body) => textField(body, "error"),
};
const conversation: Dialect = {
  ...message,
  accepted: (body) => (isOk(body) ? { messageId: textField(body, "channel", "id") } : undefined),
};

export const slack: ChannelKind<Parsed<typeof botSchema>> = {
  id: "slack",
  aliases: [],
  schema: botSchema,
  make: (settings, { fetch, folder }) => {
    const token = readSecret(settings.botToken, { path: settings.tokenFile, folder });
    const baseUrl = settings.baseUrl ?? "https://slack.com/api";
    const headers = { authorization: `Bearer ${token}` };
    const api = makeApi({ label: "slack", fetch, baseUrl, headers, secrets: [token] });
    const outcome = (answer: Answer, dialect: Dialect): SendOutcome => {
      if (answer.kind !== "answered" || answer.status !== 200) return api.outcome(answer, dialect);
      const error = textField(answer.body, "error");
      if (isOk(answer.body) || error === undefined || UNCERTAIN.has(error)) return api.outcome(answer, dialect);
      const kind = TEMPORARY.has(error) ? "retry" : REFUSED.has(error) ? "refused" : "failed";
      return { kind, reason: api.say(error) };
    };
    const open = rememberConversations(async (users, signal) =>
      openedBy(outcome(await api.call({ path: "/conversations.open", json: { users }, signal }), conversation)),
    );
    return {
      id: "slack",
      chunkLimit: Math.min(settings.textChunkLimit ?? LIMIT, LIMIT),
      chunkUnit: "utf16",
      dedupeMs: 0,
      spacingMs: settings.spacingMs ?? 1000, // one message a second in one channel
      ...(settings.defaultTo ? { defaultTo: settings.defaultTo } : {}),
      parseTarget,
      send: async ({ target, text, signal }) => {
        const [kind, id = ""] = target.to.split(":");
        const channel = kind === "user" ? await open(id, signal) : { kind: "opened" as const, id };
        if (channel.kind !== "opened") return channel;
        const json = {
          channel: channel.id,
          text: mrkdwn(text),
          ...(target.thread ? { thread_ts: target.thread } : {}),
        };
        return outcome(await api.call({ path: "/chat.postMessage", json, signal }), message);
      },
      check: async (signal) => api.health(await api.call({ path: "/auth.test", json: {}, signal }), message),
    };
  },
};

/**
 * Escapes the three characters that start mentions and links. https://docs.slack.dev/messaging/formatting-message-text
 */
const escapeText = (text: string): string =>
  text.replaceAll("&", "&amp;").replaceAll("<", "&lt;").replaceAll(">", "&gt;");

/** Slack's own markup for a text in Markdown. */
const mrkdwn = (markdown: string): string =>
  withMarks(readMarkdown(markdown, { hasLinks: true }), {
    of: ({ style, url = "" }) => (style === "link" ? [`<${escapeText(url)}|`, ">"] : CHAT_MARKS[style]),
    escape: escapeText,
  });

/** `channel:C…`, `user:U…`, `<#C…>`, `<@U…>`, `#C…`, or a bare id. */
function parseTarget(given: string): Target {
  const text = withoutPrefix(given, ["slack"]).replace(/^<([@#][A-Za-z0-9]+)(\|[^>]*)?>$/, "$1");
  const [, prefix = "", bare = ""] = /^(channel:|user:|[@#])?([A-Za-z0-9]{3,32})$/i.exec(text) ?? [];
  const id = bare.toUpperCase();
  const isUser = /^[UW]/.test(id) && !["channel:", "#"].includes(prefix.toLowerCase());
  const isChannel = /^[CGD]/.test(id) && !["user:", "@"].includes(prefix.toLowerCase());
  if (!/\d/.test(id) || (!isUser && !isChannel)) {
    throw badRecipient("slack", given, "'channel:C…' or 'user:U…' with an id, not a name");
  }
  return { channel: "slack", to: `${isUser ? "user" : "channel"}:${id}` };
}
