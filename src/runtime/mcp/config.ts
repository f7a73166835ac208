/** The section `mcp` of the configuration: the tool servers (Model Context Protocol) that Hearth may run or ask. */
import { dirname } from "node:path";
import { Type } from "@sinclair/typebox";
import { AppError, parseDuration } from "../../base/index.ts";
import { type ConfigSources, describePath, type Document, readConfigFile } from "../../base/config/index.ts";
import { type Parsed, readable, reader, refined, type SchemaProblem, strictObject } from "../../base/schema.ts";

const SERVERS_MAX = 64;
const NS_PER_MS = 1e6;
const TIMEOUT_MS_MAX = 3_600_000;
/** Names that requests may use as labels. */
const NAME = /^[A-Za-z][A-Za-z0-9_-]{0,63}$/;
const DURATION = 'a duration such as "30s", at most an hour';

const timeout = (initial: string) =>
  readable(Type.String({ default: initial, expected: DURATION }), (text) => {
    const ms = (parseDuration(text) ?? 0) / NS_PER_MS;
    return ms >= 1 && ms <= TIMEOUT_MS_MAX ? { value: Math.round(ms) } : { problem: `expected ${DURATION}` };
  });

const ADDRESSES = '"none", "public" or "all"';
/** `public`: https, and no address of this machine or its network. */
export type RequestAddresses = "none" | "public" | "all";
const isAddresses = (text: string): text is RequestAddresses => ["none", "public", "all"].includes(text);

const variable = Type.String({
  pattern: "^[A-Za-z_][A-Za-z0-9_]*$",
  maxLength: 256,
  expected: "the name of an environment variable, not its value",
});

const toolName = Type.String({ minLength: 1, maxLength: 128 });

const headerName = /^[A-Za-z0-9!#$%&'*+.^_`|~-]{1,128}$/;

const server = refined(
  strictObject({
    /** Program to start; it speaks on its standard input and output. */
    command: Type.Optional(Type.String({ minLength: 1, maxLength: 4096 })),
    args: Type.Optional(Type.Array(Type.String({ maxLength: 4096 }), { maxItems: 256 })),
    /** Variables that the program gets, besides `HOME`, `PATH` and the like. */
    env: Type.Optional(Type.Array(variable, { maxItems: 256 })),
    /** Address of a server that speaks streamable HTTP. */
    url: Type.Optional(Type.String({ maxLength: 4096 })),
    /** Header names, each with the variable that holds the whole value. */
    headers: Type.Optional(Type.Record(Type.String(), variable)),
    connectTimeout: timeout("30s"),
    callTimeout: timeout("2m"),
    /** Tools that turns of webhooks may use without an approval. */
    harmless: Type.Array(toolName, { maxItems: 256, default: [] }),
    /** Tools that repeat nothing if called twice with an equal key, each with the argument for the key. */
    idempotencyKeys: Type.Record(Type.String(), toolName, { default: {} }),
  }),
  ({ command, args, env, url, headers }) => {
    if ((command === undefined) === (url === undefined)) return "expected either 'command' or 'url'";
    if (url === undefined) return headers ? keyProblem("headers", "belongs to 'url'") : undefined;
    if (args || env) return keyProblem(args ? "args" : "env", "belongs to 'command'");
    if (!isWebAddress(url)) return keyProblem("url", "expected an http:// or https:// address without a password");
    const wrong = Object.keys(headers ?? {}).find((name) => !headerName.test(name));
    return wrong === undefined ? undefined : keyProblem("headers", "expected names of HTTP headers as keys");
  },
);

const keyProblem = (key: string, message: string): SchemaProblem[] => [{ path: [key], message }];

export function isWebAddress(text: string): boolean {
  const url = URL.parse(text);
  return url !== null && /^https?:$/.test(url.protocol) && url.username + url.password === "";
}

const mcpSchema = reader(
  strictObject(
    {
      /** True: Hearth is a tool server itself, at `/mcp`. */
      serve: Type.Boolean({ default: false }),
      /** Addresses that requests may name. Every request may name the servers of the configuration. */
      requestAddresses: readable(Type.String({ default: "none", expected: ADDRESSES }), (text) =>
        isAddresses(text) ? { value: text } : { problem: `expected ${ADDRESSES}` },
      ),
      servers: refined(Type.Record(Type.String(), server, { default: {} }), (servers) => {
        const names = Object.keys(servers);
        if (names.length > SERVERS_MAX) return `expected at most ${SERVERS_MAX} servers, got ${names.length}`;
        const wrong = names.find((name) => !NAME.test(name));
        const message = "expected a name of at most 64 letters, digits, '-' and '_', with a letter first";
        return wrong === undefined ? undefined : keyProblem(wrong, message);
      }),
    },
    { default: {} },
  ),
);

/** One configured server. */
export type ServerConfig = Parsed<typeof mcpSchema>["servers"][string];

/** The settings of a server that a request names by its address. */
export const requestConfig = (url: string): ServerConfig => ({
  url,
  connectTimeout: 30_000,
  callTimeout: 120_000,
  harmless: [],
  idempotencyKeys: {},
});

/** True for a name that tools of a server can begin with. */
export const isServerName = (name: string): boolean => NAME.test(name);

export interface McpConfig {
  /** By name, in the order of the file. */
  readonly servers: ReadonlyMap<string, ServerConfig>;
  /** True: Hearth is a tool server itself, at `/mcp`. */
  readonly isServed: boolean;
  readonly requestAddresses: RequestAddresses;
  /** Folder of the configuration file, in which programs start. */
  readonly folder: string;
}

/** Undefined: the file has no section `mcp`, or there is no file. Throws `bad_request` naming file, line and key. */
export function readMcpConfig(sources: ConfigSources): McpConfig | undefined {
  const document = readConfigFile(sources);
  return document && mcpConfigOf(document);
}

/** Like `readMcpConfig`, of a file that is read already. */
export function mcpConfigOf(document: Document): McpConfig | undefined {
  if (!Object.hasOwn(document.root, "mcp")) return undefined;
  const read = mcpSchema.safeParse(document.root["mcp"]);
  if (!read.success) {
    const lines = read.problems.slice(0, 10).map(({ path, message }) => {
      const whole = ["mcp", ...path];
      return `${document.where(whole)}: ${describePath(whole)}: ${message}`;
    });
    throw new AppError("bad_request", lines.join("\n"));
  }
  const { servers, serve: isServed, requestAddresses } = read.data;
  const folder = dirname(document.files[0] ?? ".");
  return { servers: new Map(Object.entries(servers)), isServed, requestAddresses, folder };
}
