/**
 * `/api/mcp`: the configured tool servers for clients that run a model's calls themselves, after asking their user: the
 * page and `hearth run --tools`.
 */
import { AppError, messageOf } from "../../base/index.ts";
import type { McpServer } from "../../runtime/mcp/index.ts";
import { resultContent, toolOf } from "../answers/server-tools.ts";
import { readRequest } from "../http/body.ts";
import type { Exchange } from "../http/exchange.ts";
import { get, post } from "./route.ts";
import { McpCallBody } from "../schema/mcp.ts";
import type { RouteDeps } from "./deps.ts";

export const mcpRoutes = [
  get("/api/mcp", list, { api: "native", summary: "The tool servers (MCP) of the configuration" }),
  post("/api/mcp/call", call, { api: "native", summary: "Call a tool of a tool server", body: McpCallBody }),
];

/** Connects to the servers; one that does not answer has a problem instead of tools. */
async function list({ mcp }: RouteDeps, { signal }: Exchange): Promise<{ kind: "json"; body: object }> {
  const servers = await Promise.all((mcp?.all ?? []).map((server) => listed(server, signal)));
  return { kind: "json", body: { servers } };
}

async function listed(server: McpServer, signal: AbortSignal): Promise<object> {
  const { name } = server;
  try {
    const { tools } = await server.tools(signal);
    return {
      name,
      tools: tools.map((tool) => ({
        tool: tool.name,
        harmless: server.isHarmless(tool.name),
        /** The same form as in `tools` of a chat. */
        definition: toolOf(name, tool),
      })),
    };
  } catch (error) {
    signal.throwIfAborted();
    return { name, tools: [], problem: messageOf(error) };
  }
}

/** `content` is for the model: outside text behind the safety boundary. */
async function call({ mcp }: RouteDeps, { request, signal, note }: Exchange): Promise<{ kind: "json"; body: object }> {
  const { server: name, tool, arguments: args = {} } = await readRequest(request, McpCallBody);
  if (!mcp) throw new AppError("not_found", "no tool server is configured ('mcp.servers')");
  const server = mcp.get(name ?? "");
  note({ mcp_server: server.name });
  const result = await server.call(tool ?? "", args, signal);
  const content = resultContent(result, `${server.name} ${tool}`);
  return { kind: "json", body: { text: result.text, is_error: result.isError, content } };
}
