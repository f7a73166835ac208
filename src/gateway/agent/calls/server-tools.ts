/** Tools of tool servers for turns. Mappings name a tool as `SERVER/TOOL`, all tools of a server as `SERVER/*`. */
import { AppError, type Fields, isObject, messageOf } from "../../../base/index.ts";
import type { McpResult, McpServer, McpServers, McpTool } from "../../../runtime/mcp/index.ts";
import { mcpName } from "../../../runtime/mcp/names.ts";
import type { Tool } from "../../../runtime/portable.ts";
import { neutralize } from "../boundary/index.ts";

export type ToolServers = Pick<McpServers, "get">;

export interface ServerTool {
  /** `SERVER/TOOL`. */
  readonly id: string;
  /** For the model. */
  readonly definition: Tool;
  /** True if calls need no approval. */
  readonly isHarmless: boolean;
  /** True if a call may be made again when its end is unknown. */
  readonly isRepeatable: boolean;
  /** True if a repeated call needs the key of the first. */
  readonly takesKey: boolean;
  /**
   * Makes a call. Throws as `McpServer.call`.
   * @param key equal for repeats of the same call
   */
  call(args: Fields, how: { readonly key: string; readonly signal: AbortSignal }): Promise<McpResult>;
}

/** True for a name of a mapping's list that names tools of a tool server. */
export const isServerTool = (name: string): boolean => name.includes("/");

export const serverOf = (name: string): string => name.slice(0, name.indexOf("/"));

/**
 * Asks the servers for the named tools. By the model's names of the tools. Throws `bad_request` for a tool or server
 * that does not exist, `upstream` if a server does not answer.
 */
export async function offerServerTools(
  names: readonly string[],
  { servers, signal }: { servers: ToolServers | undefined; signal: AbortSignal },
): Promise<ReadonlyMap<string, ServerTool>> {
  const wanted = Map.groupBy(new Set(names.filter(isServerTool)), serverOf);
  const found = await Promise.all([...wanted].map(async ([name, ids]) => toolsOf(find(servers, name), ids, signal)));
  return new Map(found.flat().map((tool) => [tool.definition.function.name, tool]));
}

/**
 * The named tools that are harmless and may be repeated, for turns without a journal. Throws as `offerServerTools`, and
 * `bad_request` for another tool that is named.
 */
export async function offerRepeatable(
  names: readonly string[],
  parts: Parameters<typeof offerServerTools>[1],
): Promise<ReadonlyMap<string, ServerTool>> {
  const all = await offerServerTools(names, parts);
  const isFit = ({ isHarmless, isRepeatable, takesKey }: ServerTool): boolean =>
    isHarmless && isRepeatable && !takesKey;
  const wrong = [...all.values()].find((tool) => names.includes(tool.id) && !isFit(tool));
  if (wrong) {
    const expected = "a tool that 'harmless' lists and whose server says that it may be repeated";
    throw new AppError("bad_request", `tools: expected ${expected}, got '${wrong.id}'`);
  }
  return new Map([...all].filter(([, tool]) => isFit(tool)));
}

function find(servers: ToolServers | undefined, name: string): McpServer {
  try {
    if (servers) return servers.get(name);
  } catch (error) {
    throw new AppError("bad_request", `tools: ${messageOf(error)}`);
  }
  throw new AppError("bad_request", `tools: there is no MCP server '${name}'`);
}

async function toolsOf(server: McpServer, ids: readonly string[], signal: AbortSignal): Promise<ServerTool[]> {
  const { tools } = await server.tools(signal).catch((error: unknown) => {
    // not 'untried', which applies to the model
    throw error instanceof AppError && error.code === "upstream" ? new AppError("upstream", error.message) : error;
  });
  const names = new Set(ids.map((id) => id.slice(server.name.length + 1)));
  const unknown = [...names].find((name) => name !== "*" && !tools.some((tool) => tool.name === name));
  if (unknown !== undefined) {
    throw new AppError("bad_request", `tools: the MCP server '${server.name}' has no tool '${unknown.slice(0, 128)}'`);
  }
  return tools.filter(({ name }) => names.has("*") || names.has(name)).map((tool) => serverTool(server, tool));
}

function serverTool(server: McpServer, { name, description, inputSchema, isRepeatable }: McpTool): ServerTool {
  const keyArgument = server.keyArgument(name);
  return {
    id: `${server.name}/${name}`,
    definition: {
      type: "function",
      function: {
        name: mcpName(server.name, name),
        ...(description === "" ? {} : { description: neutralize(description) }),
        parameters: keyArgument === undefined ? inputSchema : without(inputSchema, keyArgument),
      },
    },
    isHarmless: server.isHarmless(name),
    isRepeatable: isRepeatable || keyArgument !== undefined,
    takesKey: keyArgument !== undefined,
    call: (args, { key, signal }) =>
      server.call(name, keyArgument === undefined ? args : { ...args, [keyArgument]: key }, signal),
  };
}

/** The schema without an argument that the model does not choose. */
function without(schema: Fields, argument: string): Fields {
  const { properties, required } = schema;
  return {
    ...schema,
    ...(isObject(properties)
      ? { properties: Object.fromEntries(Object.entries(properties).filter(([name]) => name !== argument)) }
      : {}),
    ...(Array.isArray(required) ? { required: required.filter((name) => name !== argument) } : {}),
  };
}
