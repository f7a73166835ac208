/** Tools of other programs by the Model Context Protocol: configuration, connections, calls. */
import { AppError, unknownNameMessage } from "../../base/index.ts";
import type { ConfigSources } from "../../base/config/index.ts";
import { isServerName, isWebAddress, readMcpConfig, requestConfig, type RequestAddresses } from "./config.ts";
import { McpServer } from "./server.ts";

export { mcpConfigOf } from "./config.ts";
export type { McpResult, McpTool } from "./messages.ts";
export { McpServer, type McpTools } from "./server.ts";

interface Abilities {
  readonly isServed: boolean;
  readonly requestAddresses: RequestAddresses;
}

export interface RemoteServer {
  readonly name: string;
  readonly url: string;
  readonly headers: Readonly<Record<string, string>>;
}

/** The configured servers. Nothing is started before it is used. */
export class McpServers {
  readonly #servers: ReadonlyMap<string, McpServer>;

  /** True: Hearth is a tool server itself. */
  readonly isServed: boolean;
  readonly #addresses: RequestAddresses;

  constructor(servers: readonly McpServer[], { isServed, requestAddresses }: Abilities) {
    this.isServed = isServed;
    this.#addresses = requestAddresses;
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

  /** A server that a request names by its address; the caller closes it. Throws `bad_request` naming the problem. */
  openAt({ name, url, headers }: RemoteServer): McpServer {
    if (this.#addresses === "none") {
      const message =
        "requests name a server of the configuration, without address or key ('mcp.requestAddresses' is \"none\")";
      throw new AppError("bad_request", message);
    }
    const isPublicOnly = this.#addresses === "public";
    if (!isWebAddress(url) || (isPublicOnly && !url.startsWith("https:"))) {
      const scheme = isPublicOnly ? "an https://" : "an http:// or https://";
      throw new AppError("bad_request", `expected ${scheme} address without a password`);
    }
    if (!isServerName(name)) {
      throw new AppError("bad_request", "expected a name of at most 64 letters, digits, '-' and '_' for the server");
    }
    return new McpServer(requestConfig(url), { name, env: {}, folder: ".", remote: { headers, isPublicOnly } });
  }

  async close(): Promise<void> {
    await Promise.all(this.all.map((server) => server.close()));
  }
}

/** Reads the section `mcp`, without starting anything. Throws `bad_request` naming file, line and key. */
export function readMcpServers(sources: ConfigSources): McpServers {
  const none = { servers: new Map(), isServed: false, requestAddresses: "none", folder: "." } as const;
  const { servers, folder, ...abilities } = readMcpConfig(sources) ?? none;
  const { env } = sources;
  const made = [...servers].map(([name, config]) => new McpServer(config, { name, env, folder }));
  return new McpServers(made, abilities);
}
