/** Tools of other programs by the Model Context Protocol: configuration, connections, calls. */
import { AppError, unknownNameMessage } from "../../base/index.ts";
import type { ConfigSources } from "../../base/config/index.ts";
import { readMcpConfig } from "./config.ts";
import { McpServer } from "./server.ts";

export type { McpResult, McpTool } from "./messages.ts";
export { McpServer, type McpTools } from "./server.ts";

/** The configured servers. Nothing is started before it is used. */
export class McpServers {
  readonly #servers: ReadonlyMap<string, McpServer>;

  /** True: Hearth is a tool server itself. */
  readonly isServed: boolean;

  constructor(servers: readonly McpServer[], isServed: boolean) {
    this.isServed = isServed;
    this.#servers = new Map(servers.map((server) => [server.name, server]));
  }

  get all(): readonly McpServer[] {
    return [...this.#servers.values()];
  }

  /** Throws `not_found`. */
  get(name: string): McpServer {
    const server = this.#servers.get(name);
    if (server) return server;
    const known = [...this.#servers.keys()];
    const shown = JSON.stringify(name.slice(0, 80));
    const message =
      known.length === 0
        ? `there is no MCP server ${shown}: add it to 'mcp.servers' of hearth.json5`
        : unknownNameMessage(`there is no MCP server ${shown}`, name, known);
    throw new AppError("not_found", message);
  }

  async close(): Promise<void> {
    await Promise.all(this.all.map((server) => server.close()));
  }
}

/** Reads the section `mcp`, without starting anything. Throws `bad_request` naming file, line and key. */
export function readMcpServers(sources: ConfigSources): McpServers {
  const none = { servers: new Map(), isServed: false, folder: "." };
  const { servers, isServed, folder } = readMcpConfig(sources) ?? none;
  const { env } = sources;
  const made = [...servers].map(([name, config]) => new McpServer(config, { name, env, folder }));
  return new McpServers(made, isServed);
}
