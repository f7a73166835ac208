/**
 * The gateway's part of the configuration, checked as a whole. A snapshot is immutable: a request finishes under the
 * one it began with, and a changed file becomes a new snapshot or an error.
 */
import { isServerTool, serverOf } from "../agent/calls/server-tools.ts";
import { agentsSchema, sessionSchema } from "../agent/config.ts";
import { AppError, isObject, ownValue } from "../../base/index.ts";
import type { Parsed, SchemaProblem } from "../../base/schema.ts";
import { channelsSchema } from "../channels/config.ts";
import { channelProblems } from "../channels/load.ts";
import { describePath, type Document, type Path } from "../../base/config/index.ts";
import { gatewaySchema, hooksSchema } from "../hooks/config.ts";
import { asRequested } from "../hooks/mapping/request.ts";
import { secretsOf } from "../hooks/secrets.ts";
import { databaseSchema } from "./database-config.ts";
import { foreignKey, foreignValue } from "./foreign-keys.ts";

const PROBLEMS_SHOWN = 10;
/** First segments of the server's own paths. */
const TAKEN_PATHS = [
  "api",
  "v1",
  "health",
  "livez",
  "readyz",
  "startupz",
  "metrics",
  "docs",
  "openapi.json",
  "hooks-admin",
  "mcp",
  "ui",
];

const SECTIONS = {
  hooks: hooksSchema,
  agents: agentsSchema,
  session: sessionSchema,
  channels: channelsSchema,
  gateway: gatewaySchema,
  database: databaseSchema,
};
type Sections = { readonly [K in keyof typeof SECTIONS]: Parsed<(typeof SECTIONS)[K]> };

export type GatewaySnapshot = Sections & {
  /** Folder of the configuration file, for relative paths. */
  readonly folder: string;
  /** `file:line` of a key; empty without a file. */
  readonly where: (path: Path) => string;
};

export interface SnapshotOptions {
  readonly folder: string;
  /** Keys of the model API, `name:key` or `key`: no hook token may equal one of them. */
  readonly apiKeys: readonly string[];
}

/** Throws `bad_request` with one line per problem, naming file, line and key; of values only numbers. */
export function makeSnapshot(document: Document | undefined, { folder, apiKeys }: SnapshotOptions): GatewaySnapshot {
  const root = document?.root ?? {};
  const where = (path: Path): string => document?.where(path) ?? "";
  const read = Object.entries(SECTIONS).map(([name, schema]) => ({ name, read: schema.safeParse(root[name]) }));
  const problems = read.flatMap(({ name, read: section }) =>
    section.success
      ? []
      : section.problems.map((problem) => namedByUs({ ...problem, path: [name, ...problem.path] }, root)),
  );
  if (problems.length > 0) throw configurationError(problems, where);
  const sections = Object.fromEntries(read.map(({ name, read: each }) => [name, each.success ? each.data : undefined]));
  const snapshot = { ...(sections as unknown as Sections), folder, where }; // each section passed its own schema
  const servers = ownValue(root, ["mcp", "servers"]);
  const conflicts = [
    ...repeated(snapshot.agents.list, ["agents", "list"]),
    ...conflictsOf(snapshot, apiKeys),
    ...channelProblems(snapshot.channels),
    ...unknownServers(snapshot, isObject(servers) ? Object.keys(servers) : []),
  ];
  if (conflicts.length > 0) throw configurationError(conflicts, where);
  return deepFreeze(snapshot);
}

interface Problem {
  readonly path: Path;
  readonly message: string;
}

/**
 * Replaces a key of another program by ours in a problem.
 * @param root the whole document
 */
function namedByUs({ path, message, isUnknownKey = false }: SchemaProblem, root: unknown): Problem {
  const key = isUnknownKey ? foreignKey(path) : undefined;
  if (key !== undefined) return { path, message: `unknown key; here it is ${key}` };
  const value = foreignValue(path, ownValue(root, path.map(String)));
  return { path, message: value === undefined ? message : `here it is ${value}` };
}

/**
 * One line per problem.
 * @param where from a snapshot
 */
export function configurationError(list: readonly Problem[], where: GatewaySnapshot["where"]): AppError {
  const lines = list
    .slice(0, PROBLEMS_SHOWN)
    .map(({ path, message }) => [where(path), describePath(path), message].filter((part) => part !== "").join(": "));
  const more = list.length > PROBLEMS_SHOWN ? [`and ${list.length - PROBLEMS_SHOWN} more`] : [];
  return new AppError("bad_request", [...lines, ...more].join("\n"));
}

/** Contradictions between settings that are valid by themselves. */
function conflictsOf(
  { hooks, gateway }: Pick<GatewaySnapshot, "hooks" | "gateway">,
  apiKeys: readonly string[],
): Problem[] {
  const found: Problem[] = secretsOf(hooks).flatMap(({ path, verdict }) =>
    verdict.ok ? [] : [{ path, message: `no key of this signature scheme: expected ${verdict.expected}` }],
  );
  if (!hooks.enabled) return found;
  const tokens = [
    ...(hooks.token ? [{ path: ["hooks", "token"], token: hooks.token }] : []),
    ...hooks.tokens.map(({ token }, i) => ({ path: ["hooks", "tokens", i, "token"], token })),
  ];
  if (!hooks.token) found.push({ path: ["hooks", "token"], message: "required when hooks.enabled is true" });
  for (const { path, token } of tokens) {
    if (token === gateway.token) found.push({ path, message: "must not be the same as gateway.token" });
    const isApiKey = apiKeys.some((key) => key === token || key.replace(/^[\w.-]{1,64}:/, "") === token);
    if (isApiKey) found.push({ path, message: "must not be a key of the model API" });
  }
  const [first = ""] = hooks.path.split("/").filter((part) => part !== "");
  if (hooks.path === "/") found.push({ path: ["hooks", "path"], message: "must not be '/'" });
  if (TAKEN_PATHS.includes(first)) found.push({ path: ["hooks", "path"], message: `'/${first}' is taken` });
  const requested = `/${asRequested(hooks.path)}`;
  if (requested !== hooks.path) {
    found.push({
      path: ["hooks", "path"],
      message: `no request has this path: written so it arrives as '${requested}'`,
    });
  }
  return [...found, ...repeated(hooks.mappings, ["hooks", "mappings"]), ...repeated(hooks.tokens, ["hooks", "tokens"])];
}

/** @param known names of tool servers */
function unknownServers(
  { hooks: { mappings, presetSettings }, agents }: Pick<GatewaySnapshot, "hooks" | "agents">,
  known: readonly string[],
): Problem[] {
  const check = (tools: readonly string[], path: Path): Problem[] =>
    tools.flatMap((name, i) =>
      !isServerTool(name) || known.includes(serverOf(name))
        ? []
        : [{ path: [...path, "tools", i], message: `'mcp.servers' has no server '${serverOf(name)}'` }],
    );
  return [
    ...check(agents.defaults.heartbeat.tools, ["agents", "defaults", "heartbeat"]),
    ...mappings.flatMap(({ tools }, i) => check(tools, ["hooks", "mappings", i])),
    ...Object.entries(presetSettings).flatMap(([name, settings]) =>
      check(settings?.tools ?? [], ["hooks", "presetSettings", name]),
    ),
  ];
}

function repeated(entries: readonly { readonly id?: string | undefined }[], list: Path): Problem[] {
  const ids = entries.map(({ id }) => id);
  return ids.flatMap((id, i) =>
    id !== undefined && ids.indexOf(id) < i
      ? [{ path: [...list, i, "id"], message: "is the id of an earlier entry too" }]
      : [],
  );
}

function deepFreeze<T>(value: T): T {
  if (typeof value === "object" && value !== null) Object.values(value).forEach(deepFreeze);
  return Object.freeze(value);
}
