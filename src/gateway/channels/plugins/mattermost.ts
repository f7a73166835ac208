/**
 * Mattermost: REST API v4, posts to channels and, through a conversation, to users. A shipped plugin, loaded by its
 * name in `channels.plugins`. Repeats of a `pending_post_id` are dropped.
 * https://developers.mattermost.com/api-documentation/
 */
import type { Parsed } from "../../../base/schema.ts";
import type { Answer, Api, Dialect } from "../api.ts";
import type { ChannelKind, SendOutcome, Target } from "../channel.ts";
import type { Opened } from "../conversation.ts";
import type { PluginTools } from "../plugin.ts";

const LIMIT = 16_383; // PostMessageMaxRunesV2
/** The server remembers pending ids for 30 s; a repeat must arrive within that time. */
const DEDUPE_MS = 25_000;

export default function mattermost(tools: PluginTools): ChannelKind {
  const { Type, channelSchema, httpUrl, secret, secretFile, readSecret, makeApi, textField } = tools;
  const schema = channelSchema(
    {
      /** URL of the server, without `/api/v4`. */
      baseUrl: httpUrl(),
      botToken: Type.Optional(secret),
      tokenFile: Type.Optional(secretFile),
    },
    ["botToken", "tokenFile"],
  );
  const dialect: Dialect = {
    accepted: (body) => {
      const messageId = textField(body, "id");
      return messageId === undefined ? undefined : { messageId };
    },
    reason: (body) => textField(body, "message"),
  };
  const make = (settings: Parsed<typeof schema>, deps: Parameters<ChannelKind["make"]>[1]) => {
    const token = readSecret(settings.botToken, { path: settings.tokenFile, folder: deps.folder });
    const headers = { authorization: `Bearer ${token}` };
    const api = makeApi({
      label: "mattermost",
      fetch: deps.fetch,
      baseUrl: `${settings.baseUrl.replace(/\/+$/, "")}/api/v4`,
      headers,
      secrets: [token],
    });
    const open = tools.rememberConversations((person, signal) => openDirect({ api, dialect, tools }, person, signal));
    return {
      id: "mattermost",
      chunkLimit: Math.min(settings.textChunkLimit ?? 4000, LIMIT),
      chunkUnit: "codePoint" as const,
      dedupeMs: DEDUPE_MS,
      spacingMs: settings.spacingMs ?? 0,
      ...(settings.defaultTo ? { defaultTo: settings.defaultTo } : {}),
      parseTarget: (to: string) => parseTarget(tools, to),
      send: async ({ target, text, key, signal }: Parameters<ReturnType<ChannelKind["make"]>["send"]>[0]) => {
        const [, kind, id = ""] = /^(channel|user):(.*)$/.exec(target.to) ?? [];
        const channel = kind === "channel" ? { kind: "opened" as const, id } : await open(id || target.to, signal);
        if (channel.kind !== "opened") return channel;
        const json = {
          channel_id: channel.id,
          message: withoutGroupMentions(tools, text),
          pending_post_id: key,
          ...(target.thread ? { root_id: target.thread } : {}),
        };
        return api.outcome(await api.call({ path: "/posts", json, signal }), dialect);
      },
      check: async (signal: AbortSignal) =>
        api.health(await api.call({ method: "GET", path: "/users/me", signal }), dialect),
    };
  };
  return { id: "mattermost", aliases: ["mm"], schema, make: make as ChannelKind["make"] };
}

/** Matches a group mention: plain, as a character reference, or with a reference inside the name. */
const GROUP_MENTION =
  /(?<![\p{L}\p{N}])(?:@|&#0*64;|&#x0*40;|&commat;)(?=(?:all|channel|here)(?![\p{L}\p{N}])|[a-z]{0,7}&)/giu;

/**
 * Replaces the `@` of group mentions: a model's text must not notify a whole channel. Mentions inside code have no
 * effect and are kept, except in indented fences, because a fence in a list ends with the list.
 */
function withoutGroupMentions({ findFences }: PluginTools, text: string): string {
  const quiet = (from: number, to?: number): string => text.slice(from, to).replace(GROUP_MENTION, "\uff20");
  let done = "";
  let at = 0;
  for (const { start, end, opener } of findFences(text)) {
    if (opener.startsWith(" ")) continue;
    done += quiet(at, start) + text.slice(start, end);
    at = end;
  }
  return done + quiet(at);
}

interface Direct {
  readonly api: Api;
  readonly dialect: Dialect;
  readonly tools: PluginTools;
}

/** @param person an id, or `@name` */
async function openDirect({ api, dialect, tools }: Direct, person: string, signal: AbortSignal): Promise<Opened> {
  const read = (answer: Answer): SendOutcome => api.outcome(answer, dialect);
  const find = async (path: string): Promise<Opened> =>
    tools.openedBy(read(await api.call({ method: "GET", path, signal })));
  const self = await find("/users/me");
  if (self.kind !== "opened") return self;
  const name = person.startsWith("@") ? person.slice(1) : undefined;
  const other = name === undefined ? { kind: "opened" as const, id: person } : await find(`/users/username/${name}`);
  if (other.kind !== "opened") return other;
  return tools.openedBy(read(await api.call({ path: "/channels/direct", json: [self.id, other.id], signal })));
}

/** A channel's id, `channel:<id>`, `user:<id>`, `@name`, or `mattermost:<user id>`. */
function parseTarget({ badRecipient, withoutPrefix }: PluginTools, given: string): Target {
  const text = given.trim().replace(/^(mattermost|mm):([a-z0-9]{26})$/i, "user:$2");
  const bare = withoutPrefix(text, ["mattermost", "mm"]);
  const to = /^[a-z0-9]{26}$/.test(bare) ? `channel:${bare}` : bare;
  const isKnown = /^(channel|user):[a-z0-9]{26}$/.test(to) || /^@[a-z][a-z0-9._-]{0,63}$/.test(to);
  if (!isKnown) throw badRecipient("mattermost", given, "a channel's id, 'channel:<id>', 'user:<id>' or '@name'");
  return { channel: "mattermost", to };
}
