/** Bodies of requests about tool servers. */
import { t } from "elysia";

export const McpCallBody = t.Object(
  {
    server: t.String({ description: "Its name in `mcp.servers`" }),
    tool: t.String(),
    arguments: t.Optional(t.Record(t.String(), t.Unknown())),
  },
  { title: "McpCallRequest" },
);

/** The body of `POST /mcp`: one message of JSON-RPC, which the protocol's library reads. */
export const McpMessage = t.Object(
  {
    jsonrpc: t.String(),
    id: t.Optional(t.Unknown()),
    method: t.String(),
    params: t.Optional(t.Record(t.String(), t.Unknown())),
  },
  { title: "McpMessage" },
);
