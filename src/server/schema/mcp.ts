/** The body of `POST /api/mcp/call`. */
import { t } from "elysia";

export const McpCallBody = t.Object(
  {
    server: t.String({ description: "Its name in `mcp.servers`" }),
    tool: t.String(),
    arguments: t.Optional(t.Record(t.String(), t.Unknown())),
  },
  { title: "McpCallRequest" },
);
