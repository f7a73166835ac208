/**
 * Stand-ins for the platforms' servers on loopback. Each checks requests against the documented API (method, path,
 * headers, fields, limits), answers as documented, and can be set to answer differently, to stay silent, or to hang up.
 */
import { createServer, type Socket } from "node:net";

export interface Seen {
  readonly method: string;
  readonly path: string;
  readonly headers: Headers;
  readonly body: Record<string, unknown>;
}

/** The platform's answer: JSON for 200, or a whole response. */
type Reply = Response | Record<string, unknown>;

export interface Platform {
  /** The error in a request; undefined: it is valid. */
  readonly wrong: (request: Seen) => string | undefined;
  readonly answer: (request: Seen) => Reply;
  /** For requests that are messages: recipient and text. */
  readonly message: (request: Seen) => { to: string; text: string } | undefined;
}

export const TOKEN = "s3cret-t0ken";
const ID = "a".repeat(26);

const need = (checks: Readonly<Record<string, boolean>>): string | undefined =>
  Object.entries(checks).find(([, holds]) => !holds)?.[0];
const isText = (value: unknown, max: number): boolean =>
  typeof value === "string" && value.trim() !== "" && value.length <= max;
const onlyKeys = (body: object, ...keys: string[]): boolean => Object.keys(body).every((key) => keys.includes(key));
const bearer = (headers: Headers): boolean => headers.get("authorization") === `Bearer ${TOKEN}`;
const isJson = (headers: Headers): boolean => headers.get("content-type")?.startsWith("application/json") ?? false;

const post = (checks: Readonly<Record<string, boolean>>, { method, headers }: Seen): string | undefined =>
  need({ "method POST": method === "POST", json: isJson(headers), ...checks });

/** Entities lie in the text, and code contains and is contained in no other. */
function areEntities({ text, entities = [] }: Record<string, unknown>): boolean {
  const all = entities as { type: string; offset: number; length: number }[];
  const isCode = ({ type }: { type: string }): boolean => type === "code" || type === "pre";
  const isApart = (a: (typeof all)[number], b: (typeof all)[number]): boolean =>
    a === b || a.offset + a.length <= b.offset || b.offset + b.length <= a.offset;
  const fits = ({ offset, length }: (typeof all)[number]): boolean =>
    offset >= 0 && length > 0 && offset + length <= String(text).length;
  return all.length <= 100 && all.every(fits) && all.filter(isCode).every((one) => all.every((b) => isApart(one, b)));
}

export const platforms = {
  telegram: {
    wrong: (seen) =>
      post(
        {
          path: seen.path === `/bot${TOKEN}/sendMessage` || seen.path === `/bot${TOKEN}/getMe`,
          "chat_id is a number or @name":
            seen.path.endsWith("getMe") || /^(-?\d+|@\w+)$/.test(String(seen.body.chat_id)),
          text: seen.path.endsWith("getMe") || isText(seen.body.text, 4096),
          thread: ["undefined", "number"].includes(typeof seen.body.message_thread_id),
          entities: areEntities(seen.body),
          fields: onlyKeys(seen.body, "chat_id", "text", "entities", "message_thread_id"),
        },
        seen,
      ),
    answer: () => ({ ok: true, result: { message_id: 77 } }),
    message: ({ body }) => (body.text ? { to: String(body.chat_id), text: String(body.text) } : undefined),
  },
  discord: {
    wrong: (seen) => {
      const auth = seen.headers.get("authorization") === `Bot ${TOKEN}`;
      const agent = /^DiscordBot \(.+, .+\)/.test(seen.headers.get("user-agent") ?? "");
      if (seen.method === "GET") return need({ path: seen.path === "/users/@me", auth, agent });
      if (seen.path === "/users/@me/channels") {
        return post({ auth, agent, recipient: /^\d+$/.test(String(seen.body.recipient_id)) }, seen);
      }
      const { body } = seen;
      return post(
        {
          path: /^\/channels\/\d+\/messages$/.test(seen.path),
          auth,
          agent,
          content: isText(body.content, 2000),
          nonce: typeof body.nonce === "string" && body.nonce.length <= 25,
          "enforce_nonce with a nonce": body.enforce_nonce === true,
          "no mentions": Bun.deepEquals(body.allowed_mentions, { parse: [] }),
        },
        seen,
      );
    },
    answer: ({ path }) => ({ id: path.endsWith("/channels") ? "424242424242" : "99" }),
    message: ({ body, path }) => (body.content ? { to: path.split("/")[2]!, text: String(body.content) } : undefined),
  },
  slack: {
    wrong: (seen) => {
      const { body, path } = seen;
      const known: Record<string, boolean> = {
        "/auth.test": true,
        "/conversations.open": /^[UW]\w+$/.test(String(body.users)),
        "/chat.postMessage": /^[CGD]\w+$/.test(String(body.channel)) && isText(body.text, 40_000),
      };
      return post({ [`path and fields of ${path}`]: known[path] ?? false, auth: bearer(seen.headers) }, seen);
    },
    answer: ({ path }) =>
      path === "/conversations.open" ? { ok: true, channel: { id: "D77" } } : { ok: true, ts: "1700000000.000100" },
    message: ({ body }) => (body.text ? { to: String(body.channel), text: String(body.text) } : undefined),
  },
  whatsapp: {
    wrong: (seen) => {
      const { body, method, path } = seen;
      const auth = bearer(seen.headers);
      if (method === "GET") return need({ path: path === "/v23.0/1234567?fields=id", auth });
      const text = body.text as { body?: unknown; preview_url?: unknown } | undefined;
      return post(
        {
          path: path === "/v23.0/1234567/messages",
          auth,
          product: body.messaging_product === "whatsapp" && body.recipient_type === "individual",
          to: /^\d{7,15}$/.test(String(body.to)),
          type: body.type === "text",
          text: isText(text?.body, 4096) && typeof text?.preview_url === "boolean",
        },
        seen,
      );
    },
    answer: ({ method }) =>
      method === "GET"
        ? { id: "1234567" }
        : { messaging_product: "whatsapp", contacts: [{ wa_id: "1" }], messages: [{ id: "wamid.X" }] },
    message: ({ body }) =>
      body.text ? { to: String(body.to), text: String((body.text as { body: string }).body) } : undefined,
  },
  signal: {
    wrong: (seen) => {
      if (seen.method === "GET") return need({ path: seen.path === "/api/v1/check" });
      const params = (seen.body.params ?? {}) as Record<string, unknown>;
      const recipients = ["recipient", "groupId", "username"].filter((key) => key in params);
      return post(
        {
          path: seen.path === "/api/v1/rpc",
          rpc: seen.body.jsonrpc === "2.0" && seen.body.method === "send" && typeof seen.body.id === "string",
          "one recipient": recipients.length === 1,
          lists: ["recipient", "username"].every((key) => !(key in params) || Array.isArray(params[key])),
          message: isText(params.message, 4000),
          account: params.account === "+15550199",
        },
        seen,
      );
    },
    answer: ({ body }) => ({
      jsonrpc: "2.0",
      id: body.id,
      result: { timestamp: 1_700_000_000_123, results: [{ type: "SUCCESS" }] },
    }),
    message: ({ body }) => {
      const { recipient, groupId, username, message } = (body.params ?? {}) as Record<string, unknown>;
      return message ? { to: String(recipient ?? groupId ?? username), text: String(message) } : undefined;
    },
  },
  imessage: {
    wrong: (seen) => {
      const { body } = seen;
      const params = (body.params ?? {}) as Record<string, unknown>;
      const isSend = body.method === "send";
      const to = ["to", "chat_id", "chat_guid", "chat_identifier"].filter((key) => key in params);
      return post(
        {
          path: seen.path === "/bridge",
          auth: bearer(seen.headers),
          rpc: body.jsonrpc === "2.0" && (isSend || body.method === "chats.list"),
          "one recipient": !isSend || to.length === 1,
          chat_id: !("chat_id" in params) || typeof params.chat_id === "number",
          text: !isSend || isText(params.text, 4000),
          service: !("to" in params) || ["auto", "imessage", "sms"].includes(String(params.service)),
        },
        seen,
      );
    },
    answer: ({ body }) => ({ jsonrpc: "2.0", id: body.id, result: { ok: true, guid: "G-1" } }),
    message: ({ body }) => {
      const params = (body.params ?? {}) as Record<string, unknown>;
      const to = params.to ?? params.chat_id ?? params.chat_guid ?? params.chat_identifier;
      return body.method === "send" ? { to: String(to), text: String(params.text) } : undefined;
    },
  },
  msteams: {
    wrong: (seen) => {
      const { body, path } = seen;
      if (path === "/tenant-1/oauth2/v2.0/token") {
        return need({
          form: seen.headers.get("content-type") === "application/x-www-form-urlencoded",
          grant: body.grant_type === "client_credentials",
          credentials: body.client_id === "app-1" && body.client_secret === TOKEN,
          scope: body.scope === "https://api.botframework.com/.default",
        });
      }
      const auth = /^Bearer access-[\w-]+$/.test(seen.headers.get("authorization") ?? "");
      if (path === "/v3/conversations") {
        const { bot, members, tenantId, isGroup } = body as Record<string, { id?: string; length?: number }>;
        return post(
          { auth, bot: bot?.id === "28:app-1", one: members?.length === 1, tenant: !!tenantId, direct: !isGroup },
          seen,
        );
      }
      return post(
        {
          path: /^\/v3\/conversations\/[^/]+\/activities$/.test(path),
          auth,
          type: body.type === "message" && body.textFormat === "markdown",
          text: isText(body.text, 7000),
        },
        seen,
      );
    },
    answer: ({ path }) =>
      path.endsWith("/token")
        ? { token_type: "Bearer", expires_in: 3600, access_token: `access-${crypto.randomUUID()}` }
        : Response.json({ id: path === "/v3/conversations" ? "a:direct" : "1700" }, { status: 201 }),
    message: ({ body, path }) =>
      body.type === "message" ? { to: decodeURIComponent(path.split("/")[3]!), text: String(body.text) } : undefined,
  },
  mattermost: {
    wrong: (seen) => {
      const auth = bearer(seen.headers);
      if (seen.method === "GET") {
        return need({ path: /^\/api\/v4\/users\/(me|username\/ann)$/.test(seen.path), auth });
      }
      if (seen.path === "/api/v4/channels/direct")
        return post({ auth, pair: Object.keys(seen.body).length === 2 }, seen);
      return post(
        {
          path: seen.path === "/api/v4/posts",
          auth,
          channel: /^[a-z0-9]{26}$/.test(String(seen.body.channel_id)),
          message: isText(seen.body.message, 2 * 16_383),
          pending: isText(seen.body.pending_post_id, 64),
        },
        seen,
      );
    },
    answer: ({ path }) => Response.json({ id: path.endsWith("direct") ? "d".repeat(26) : ID }, { status: 201 }),
    message: ({ body }) => (body.message ? { to: String(body.channel_id), text: String(body.message) } : undefined),
  },
} as const satisfies Record<string, Platform>;

export type PlatformId = keyof typeof platforms;

/** The section of the configuration that points a channel to its stand-in, and one recipient. */
export const sections: Readonly<
  Record<PlatformId, { readonly settings: Record<string, unknown>; readonly to: string }>
> = {
  telegram: { settings: { botToken: TOKEN }, to: "-1001234:topic:5" },
  discord: { settings: { token: `Bot ${TOKEN}` }, to: "channel:123456789" },
  slack: { settings: { botToken: TOKEN }, to: "channel:C0123" },
  whatsapp: { settings: { accessToken: TOKEN, phoneNumberId: "1234567" }, to: "+1 (555) 010-0123" },
  signal: { settings: { account: "+15550199" }, to: "+15550100" },
  imessage: { settings: { token: TOKEN }, to: "ann@example.com" },
  msteams: { settings: { appId: "app-1", appPassword: TOKEN, tenantId: "tenant-1" }, to: "19:abc@thread.tacv2" },
  mattermost: { settings: { botToken: TOKEN }, to: `channel:${ID}` },
};

export interface StandIn {
  readonly url: string;
  readonly seen: Seen[];
  /** Invalid requests: a test that leaves any has failed. */
  readonly wrong: string[];
  /** Instead of the documented answer; undefined: the documented one. */
  reply: ((request: Seen) => Reply | Promise<Reply | undefined> | undefined) | undefined;
  /** Texts that arrived, in order. */
  texts(): string[];
  stop(): void;
}

export function startPlatform(id: PlatformId): StandIn {
  const platform: Platform = platforms[id];
  const server = Bun.serve({
    port: 0,
    hostname: "127.0.0.1",
    idleTimeout: 0,
    fetch: async (request) => {
      const { pathname, search } = new URL(request.url);
      const raw = await request.text();
      const isForm = request.headers.get("content-type")?.includes("urlencoded");
      const body = raw === "" ? {} : isForm ? Object.fromEntries(new URLSearchParams(raw)) : JSON.parse(raw);
      const entry = { method: request.method, path: pathname + search, headers: request.headers, body };
      standIn.seen.push(entry);
      const problem = platform.wrong(entry);
      if (problem) standIn.wrong.push(`${id} ${entry.method} ${entry.path}: ${problem}: ${raw.slice(0, 200)}`);
      const reply = (await standIn.reply?.(entry)) ?? platform.answer(entry);
      return reply instanceof Response ? reply : Response.json(reply);
    },
  });
  const standIn: StandIn = {
    url: `http://127.0.0.1:${server.port}${id === "imessage" ? "/bridge" : ""}`,
    seen: [],
    wrong: [],
    reply: undefined,
    texts: () => standIn.seen.flatMap((entry) => platform.message(entry)?.text ?? []),
    stop: () => void server.stop(true),
  };
  return standIn;
}

/** Settings for a stand-in. */
export const sectionFor = (
  id: PlatformId,
  url: string,
  more: Record<string, unknown> = {},
): Record<string, unknown> => ({
  ...sections[id].settings,
  baseUrl: url,
  ...(id === "msteams" ? { loginUrl: url } : {}),
  spacingMs: 0,
  ...more,
});

/** A server that reads requests completely and then breaks the connection in some way. */
export async function startRude(
  then: (socket: Socket) => void,
): Promise<{ url: string; taken: () => number; connections: () => number; stop(): void }> {
  let [taken, connections] = [0, 0];
  const server = createServer((socket) => {
    let text = "";
    connections++;
    socket.on("error", () => {});
    socket.on("data", (data) => {
      text += data.toString();
      if (!/\r\n\r\n[^]*\}$/.test(text)) return;
      taken++;
      then(socket);
    });
  });
  await new Promise<void>((resolve) => server.listen(0, "127.0.0.1", resolve));
  const address = server.address() as { port: number };
  return {
    url: `http://127.0.0.1:${address.port}`,
    taken: () => taken,
    connections: () => connections,
    stop: () => void server.close(),
  };
}
