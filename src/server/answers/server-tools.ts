/**
 * Tools of tool servers (MCP) that a request may use, and whose calls the server runs. A request names servers of the
 * configuration, or addresses where the configuration allows that.
 */
import { AppError, isObject, optional, readText, unexpected } from "../../base/index.ts";
import { external, neutralize, renderTainted } from "../../gateway/agent/boundary/index.ts";
import type { McpResult, McpServer, McpServers, McpTool } from "../../runtime/mcp/index.ts";
import { mcpName } from "../../runtime/mcp/names.ts";
import type { Tool } from "../../runtime/portable.ts";

/** The tools of one server that a request may use. */
export interface McpOffer {
  readonly label: string;
  readonly server: Pick<McpServer, "call">;
  readonly tools: readonly McpTool[];
  /** Ends the connection to a server that the request named by its address. */
  readonly close?: () => Promise<void>;
}

/** A server that a request names. A path is the position of a field in the request, for errors. */
export interface RequestedServer {
  readonly label: { readonly text: string; readonly path: string };
  /** Absent: a server of the configuration. */
  readonly url: { readonly text: string; readonly path: string } | undefined;
  /** For a server that is named by its address. */
  readonly headers: Readonly<Record<string, string>>;
  readonly accepts: (tool: string) => boolean;
  /** Tools that the request names: each must exist. */
  readonly named: { readonly names: readonly string[]; readonly path: string };
}

/** Maximum number of servers of one request that are named by their addresses. */
const ADDRESSES_MAX = 8;

type Servers = Pick<McpServers, "get" | "openAt">;

/** Asks the servers for their tools. Throws `bad_request`, or `upstream` if a server does not answer. */
export async function offerTools(
  servers: Servers | undefined,
  requested: readonly RequestedServer[],
  signal: AbortSignal,
): Promise<readonly McpOffer[]> {
  const [first] = requested;
  const labels = new Set(requested.map(({ label }) => label.text));
  if (first && labels.size < requested.length) {
    throw new AppError("bad_request", `${first.label.path}: expected each name of a server once`);
  }
  const opened: McpServer[] = [];
  try {
    const found = requested.map((each) => findServer(servers, each, opened));
    return await Promise.all(
      requested.map(async ({ label: { text: label }, accepts, named }, i): Promise<McpOffer> => {
        const server = found[i]!;
        const { tools } = await server.tools(signal);
        const unknown = named.names.find((name) => !tools.some((tool) => tool.name === name));
        if (unknown !== undefined) throw unexpected(named.path, `names of tools of '${label}'`, unknown);
        const close = opened.includes(server) ? { close: () => server.close() } : {};
        return { label, server, tools: tools.filter(({ name }) => accepts(name)), ...close };
      }),
    );
  } catch (error) {
    await Promise.all(opened.map((server) => server.close()));
    throw error;
  }
}

/** Ends connections that were opened for one request. */
export const closeOffers = async (offers: readonly McpOffer[]): Promise<void> =>
  void (await Promise.all(offers.map(({ close }) => close?.())));

/** @param opened gets a server that is named by its address */
function findServer(
  servers: Servers | undefined,
  { label, url, headers }: RequestedServer,
  opened: McpServer[],
): McpServer {
  if (!servers) {
    throw new AppError("bad_request", `${label.path}: no tool server is configured here ('mcp.servers')`);
  }
  try {
    if (url === undefined) return servers.get(label.text);
    if (opened.length === ADDRESSES_MAX) throw new AppError("bad_request", `expected at most ${ADDRESSES_MAX}`);
    const server = servers.openAt({ name: label.text, url: url.text, headers });
    opened.push(server);
    return server;
  } catch (error) {
    if (!(error instanceof AppError)) throw error;
    throw new AppError("bad_request", `${(url ?? label).path}: ${error.message}`);
  }
}

/** The header of a key in a request. Throws `bad_request` without showing the key. */
export function bearerOf(value: unknown, path: string): Readonly<Record<string, string>> {
  const key = optional(readText)(value, path);
  return key === undefined ? {} : readHeaders({ authorization: `Bearer ${key}` }, path);
}

/** Throws `bad_request` without showing a value. */
export function readHeaders(value: unknown, path: string): Readonly<Record<string, string>> {
  if (value === undefined || value === null) return {};
  try {
    if (isObject(value)) return Object.fromEntries(new Headers(value as Record<string, string>));
  } catch {
    // the error would show the value
  }
  throw new AppError("bad_request", `${path}: expected names and values of HTTP headers`);
}

/** The tools in the form that the model sees. */
export const toolsOf = (offers: readonly McpOffer[]): Tool[] =>
  offers.flatMap(({ label, tools }) => tools.map((tool) => toolOf(label, tool)));

/** A tool of a server in the form that the model sees. */
export const toolOf = (server: string, { name, description, inputSchema }: McpTool): Tool => ({
  type: "function",
  function: {
    name: mcpName(server, name),
    ...(description === "" ? {} : { description: neutralize(description) }),
    parameters: inputSchema,
  },
});

/** A result in the form that the model sees: outside text behind the safety boundary. */
export function resultContent({ text, isError }: McpResult, source: string): string {
  const shown = text === "" ? "(no output)" : renderTainted(external(text), { isWrapped: true, source });
  return isError ? `error: ${shown}` : shown;
}
