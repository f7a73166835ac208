/**
 * `/mcp`: Hearth as a tool server of the Model Context Protocol, over streamable HTTP without sessions. Off unless
 * `mcp.serve` is true. Each tool is a request to another endpoint of this server, with the caller's key.
 */
import { AppError, isObject, VERSION, type Fields } from "../../base/index.ts";
import { readJson } from "../http/body.ts";
import type { Exchange, Reply } from "../http/exchange.ts";
import { post } from "./route.ts";
import { McpMessage } from "../schema/mcp.ts";
import type { RouteDeps } from "./deps.ts";
import { type OwnTool, ownTools } from "./mcp-server-tools.ts";

/** Maximum number of UTF-16 units of a result. */
const RESULT_CHARS_MAX = 1_000_000;

export const mcpServerRoutes = [
  post("/mcp", receive, {
    api: "native",
    summary: "Hearth as a tool server (MCP), if `mcp.serve` is true",
    body: McpMessage,
  }),
];

async function receive(deps: RouteDeps, { request, signal, note }: Exchange): Promise<Reply> {
  if (!deps.mcp?.isServed) throw new AppError("not_found", "this server offers no tools: 'mcp.serve' is not true");
  const body = await readJson(request);
  if (!isObject(body)) throw new AppError("bad_request", "expected one JSON-RPC message");
  note({ mcp_method: String(body["method"]).slice(0, 64) });
  const { Server } = await import("@modelcontextprotocol/sdk/server/index.js");
  const { WebStandardStreamableHTTPServerTransport } =
    await import("@modelcontextprotocol/sdk/server/webStandardStreamableHttp.js");
  const { CallToolRequestSchema, ListToolsRequestSchema } = await import("@modelcontextprotocol/sdk/types.js");
  const server = new Server({ name: "hearth", version: VERSION }, { capabilities: { tools: {} } });
  const tools = ownTools(deps);
  server.setRequestHandler(ListToolsRequestSchema, () => ({
    tools: tools.map(({ name, description, inputSchema, annotations }) => ({
      name,
      description,
      inputSchema: { ...inputSchema, type: "object" as const },
      annotations,
    })),
  }));
  server.setRequestHandler(CallToolRequestSchema, ({ params }) => {
    const tool = tools.find(({ name }) => name === params.name);
    if (!tool) return failure(`there is no tool '${params.name.slice(0, 64)}'`);
    return run(deps, { tool, args: params.arguments ?? {}, request, signal });
  });
  const transport = new WebStandardStreamableHTTPServerTransport({ enableJsonResponse: true });
  // the library's transports do not satisfy its own interface under exactOptionalPropertyTypes
  await server.connect(transport as Parameters<typeof server.connect>[0]);
  try {
    return { kind: "made", response: await transport.handleRequest(request, { parsedBody: body }) };
  } finally {
    await server.close();
  }
}

const failure = (text: string) => ({ content: [{ type: "text" as const, text }], isError: true });

interface Run {
  readonly tool: OwnTool;
  readonly args: Fields;
  /** Its headers have the caller's credentials. */
  readonly request: Request;
  readonly signal: AbortSignal;
}

async function run({ dispatch }: RouteDeps, { tool, args, request, signal }: Run) {
  const { method, path, body, isHook } = tool.request(args);
  const headers = new Headers({ "content-type": "application/json" });
  // hooks have other tokens, which a client sends in addition to the key
  for (const name of isHook ? ["x-gateway-token", "host"] : ["authorization", "x-api-key", "host", "origin"]) {
    const value = request.headers.get(name);
    if (value !== null) headers.set(name, value);
  }
  if (isHook) headers.set("prefer", "wait=300");
  const given = body === undefined ? {} : { body: JSON.stringify(body) };
  const response = await dispatch(new Request(new URL(path, request.url).href, { method, headers, signal, ...given }));
  const text = await response.text();
  const shown = text.length > RESULT_CHARS_MAX ? `${text.slice(0, RESULT_CHARS_MAX)}… (cut)` : text;
  if (!response.ok) return failure(shown);
  return { content: [{ type: "text" as const, text: tool.read ? tool.read(JSON.parse(text) as Fields) : shown }] };
}
