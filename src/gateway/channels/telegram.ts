/** Telegram: Bot API, `sendMessage` with a text and its entities. https://core.telegram.org/bots/api */
import type { Parsed } from "../../base/schema.ts";
import { field, makeApi, secondsField, textField, type Dialect } from "./api.ts";
import type { ChannelKind, Target } from "./channel.ts";
import { botSchema, readSecret } from "./config.ts";
import { readMarkdown, type Span, type Style } from "./formatted.ts";
import { badRecipient, withoutPrefix } from "./recipient.ts";

const LIMIT = 4096;
/** The topic "General" has no id in the API: a message without a topic goes there. */
const GENERAL = "1";

const dialect: Dialect = {
  accepted: (body) => (field(body, "ok") === true ? { messageId: textField(body, "result", "message_id") } : undefined),
  reason: (body) => {
    const movedTo = textField(body, "parameters", "migrate_to_chat_id");
    const words = textField(body, "description");
    return movedTo ? `${words}; the chat's id is now ${movedTo}` : words;
  },
  retryAfterMs: (body) => secondsField(body, "parameters", "retry_after"),
  isRefusal: (status) => status === 404, // the token is a part of the path; an unknown chat is 400
};

export const telegram: ChannelKind<Parsed<typeof botSchema>> = {
  id: "telegram",
  aliases: ["tg"],
  schema: botSchema,
  make: (settings, { fetch, folder }) => {
    const token = readSecret(settings.botToken, { path: settings.tokenFile, folder });
    const baseUrl = settings.baseUrl ?? "https://api.telegram.org";
    const api = makeApi({ label: "telegram", fetch, baseUrl, secrets: [token] });
    return {
      id: "telegram",
      chunkLimit: Math.min(settings.textChunkLimit ?? 4000, LIMIT),
      chunkUnit: "utf16",
      dedupeMs: 0,
      spacingMs: settings.spacingMs ?? 1000, // "avoid sending more than one message per second" in one chat
      ...(settings.defaultTo ? { defaultTo: settings.defaultTo } : {}),
      parseTarget,
      send: async ({ target, text, signal }) => {
        const json = {
          chat_id: target.to.startsWith("@") ? target.to : Number(target.to),
          ...formattedText(text),
          ...(target.thread ? { message_thread_id: Number(target.thread) } : {}),
        };
        return api.outcome(await api.call({ path: `/bot${token}/sendMessage`, json, signal }), dialect);
      },
      check: async (signal) => api.health(await api.call({ path: `/bot${token}/getMe`, json: {}, signal }), dialect),
    };
  },
};

const ENTITIES: Readonly<Record<Style, string>> = {
  bold: "bold",
  italic: "italic",
  strike: "strikethrough",
  code: "code",
  pre: "pre",
  link: "text_link",
};
const ENTITIES_MAX = 100;

/** A text in Markdown as text and entities: unlike a `parse_mode`, those cannot make a message invalid. */
function formattedText(markdown: string): { text: string; entities?: object[] } {
  const { text, spans } = readMarkdown(markdown, { hasLinks: true });
  if (text.length > LIMIT) return { text: markdown };
  const codes = spans.filter(({ style }) => style === "code" || style === "pre");
  const parts = spans.flatMap((span) => (codes.includes(span) ? [span] : around(span, codes)));
  const entities = parts.slice(0, ENTITIES_MAX).map(({ style, start, end, url, language }) => ({
    type: ENTITIES[style],
    offset: start,
    length: end - start,
    ...(url === undefined ? {} : { url }),
    ...(language === undefined ? {} : { language }),
  }));
  return entities.length === 0 ? { text } : { text, entities };
}

/** The parts of a span outside of code, which no other entity may contain. */
function around(span: Span, codes: readonly Span[]): Span[] {
  const inside = codes.filter(({ start, end }) => start >= span.start && end <= span.end);
  const starts = [span.start, ...inside.map(({ end }) => end)];
  const ends = [...inside.map(({ start }) => start), span.end];
  return starts.flatMap((start, i) => (start < ends[i]! ? [{ ...span, start, end: ends[i]! }] : []));
}

/** `123`, `-100…`, `@name`, `t.me/name`; a topic follows as `:topic:5` or `:5`. */
function parseTarget(given: string): Target {
  const text = withoutPrefix(given, ["telegram", "tg"]).replace(/^(https?:\/\/)?t\.me\//i, "@");
  const [, to, thread] = /^(-?\d{1,15}|@[A-Za-z]\w{3,31})(?::(?:topic:)?(\d{1,10}))?$/.exec(text) ?? [];
  if (to === undefined) throw badRecipient("telegram", given, "a chat id, '@name' or '<chat>:topic:<n>'");
  return { channel: "telegram", to, ...(thread && thread !== GENERAL ? { thread } : {}) };
}
