/**
 * Tools of type `mcp` in a Responses request: all tools of a configured server, or some of them. The server runs their
 * calls. Requests name servers and never their addresses or keys.
 */
import {
  AppError,
  isObject,
  optional,
  readFields,
  readList,
  readText,
  unexpected,
  type Fields,
} from "../../base/index.ts";
import { neutralize } from "../../gateway/agent/boundary/index.ts";
import type { McpServer, McpServers, McpTool } from "../../runtime/mcp/index.ts";
import { mcpName } from "../../runtime/mcp/names.ts";
import type { Tool } from "../../runtime/portable.ts";

/** The tools of one server that a request may use. */
export interface McpOffer {
  readonly label: string;
  readonly server: Pick<McpServer, "call">;
  readonly tools: readonly McpTool[];
}

/** Fields with which a request would choose an address or send a key. */
const ADDRESSES = ["server_url", "connector_id", "tunnel_id", "authorization", "headers"];

export const isMcp = (tool: Fields): boolean => tool["type"] === "mcp";

/** Asks the servers for their tools. Throws `bad_request`, or `upstream` if a server does not answer. */
export async function offerTools(
  servers: Pick<McpServers, "get"> | undefined,
  body: { tools?: unknown[] },
  signal: AbortSignal,
): Promise<readonly McpOffer[]> {
  const all = readList(readFields)(body.tools ?? [], "tools");
  const wishes = all.flatMap((tool, i) => (isMcp(tool) ? [readWish(tool, `tools.${i}`, servers)] : []));
  const labels = new Set(wishes.map(({ label }) => label));
  if (labels.size < wishes.length) throw new AppError("bad_request", "tools: expected each server_label once");
  return Promise.all(
    wishes.map(async ({ label, server, allowed, path }) => {
      const { tools } = await server.tools(signal);
      const unknown = allowed?.find((name) => !tools.some((tool) => tool.name === name));
      if (unknown !== undefined) throw unexpected(`${path}.allowed_tools`, `names of tools of '${label}'`, unknown);
      return { label, server, tools: tools.filter(({ name }) => allowed?.includes(name) ?? true) };
    }),
  );
}

function readWish(tool: Fields, path: string, servers: Pick<McpServers, "get"> | undefined) {
  const address = ADDRESSES.find((key) => tool[key] !== undefined && tool[key] !== null);
  if (address !== undefined) {
    const message = "requests name a server of the configuration by its server_label, without address or key";
    throw new AppError("bad_request", `${path}.${address}: ${message}`);
  }
  const approval = tool["require_approval"];
  if (approval !== "never") {
    throw unexpected(`${path}.require_approval`, '"never": calls cannot wait for an approval here', approval);
  }
  const label = readText(tool["server_label"], `${path}.server_label`);
  const names = tool["allowed_tools"];
  const list = isObject(names) ? names["tool_names"] : names;
  const allowed = optional(readList(readText))(list, `${path}.allowed_tools`);
  return { label, server: findServer(servers, label, path), allowed, path };
}

function findServer(servers: Pick<McpServers, "get"> | undefined, label: string, path: string): McpServer {
  try {
    if (servers) return servers.get(label);
  } catch (error) {
    if (!(error instanceof AppError)) throw error;
    throw new AppError("bad_request", `${path}.server_label: ${error.message}`);
  }
  throw new AppError("bad_request", `${path}.server_label: no tool server is configured here ('mcp.servers')`);
}

/** The tools as the model sees them. */
export const toolsOf = (offers: readonly McpOffer[]): Tool[] =>
  offers.flatMap(({ label, tools }) =>
    tools.map(({ name, description, inputSchema }) => ({
      type: "function",
      function: {
        name: mcpName(label, name),
        ...(description === "" ? {} : { description: neutralize(description) }),
        parameters: inputSchema,
      },
    })),
  );
