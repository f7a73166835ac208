/** `hearth mcp list`, `test` and `tools`: the configured tool servers, their state and their tools. */
import { AppError, messageOf } from "../../base/index.ts";
import type { ConfigSources } from "../../base/config/index.ts";
import { oneLine } from "../../gateway/agent/boundary/index.ts";
import { type McpServer, type McpServers, readMcpServers } from "../../runtime/mcp/index.ts";
import { interruptible, ReportedFailure } from "../terminal/context.ts";
import { formatTable } from "../terminal/format.ts";
import type { Terminal } from "../terminal/terminal.ts";

const TEXT_CHARS_MAX = 400;

export interface McpContext {
  readonly terminal: Terminal;
  readonly sources: ConfigSources;
  readonly json: boolean;
}

export async function listServers(context: McpContext): Promise<void> {
  const servers = configured(context).all.map(({ name, transport, target }) => ({ name, transport, target }));
  show(context, servers, ["NAME", "TRANSPORT", "TARGET"]);
}

/** Throws `ReportedFailure` if a server does not answer. */
export async function testServers(context: McpContext, name: string | undefined): Promise<void> {
  const servers = configured(context);
  const chosen = name === undefined ? servers.all : [servers.get(name)];
  const found = await interruptible((signal) => Promise.all(chosen.map((server) => testOne(server, signal))));
  show(context, found, ["NAME", "STATE", "SERVER", "TOOLS", "PROBLEM"]);
  if (found.some(({ state }) => state !== "ok")) throw new ReportedFailure();
}

async function testOne(server: McpServer, signal: AbortSignal) {
  const { name } = server;
  try {
    const about = await server.about(signal);
    const { tools, problems } = await server.tools(signal);
    return { name, state: "ok", server: about.server, tools: tools.length, problem: problems.join("; ") };
  } catch (error) {
    return { name, state: "failed", server: "", tools: 0, problem: messageOf(error) };
  } finally {
    await server.close();
  }
}

export async function listTools(context: McpContext, name: string): Promise<void> {
  const server = configured(context).get(name);
  try {
    const { tools, problems } = await interruptible((signal) => server.tools(signal));
    for (const problem of problems) context.terminal.note(`left out: ${oneLine(problem, TEXT_CHARS_MAX)}`);
    if (context.json) return context.terminal.write(`${JSON.stringify(tools, null, 2)}\n`);
    show(
      context,
      tools.map(({ name: tool, description }) => ({ tool, description: description.split("\n", 1)[0] ?? "" })),
      ["TOOL", "DESCRIPTION"],
    );
  } finally {
    await server.close();
  }
}

/** Throws `not_found` without servers. */
function configured({ sources }: McpContext): McpServers {
  const servers = readMcpServers(sources);
  if (servers.all.length > 0) return servers;
  throw new AppError("not_found", "no tool server is configured: add one to 'mcp.servers' of hearth.json5");
}

/** Prints rows as a table, or as JSON. */
function show({ terminal, json }: McpContext, rows: readonly object[], headings: readonly string[]): void {
  if (json) return terminal.write(`${JSON.stringify(rows, null, 2)}\n`);
  const cells = rows.map((row) => Object.values(row).map((value) => oneLine(String(value), TEXT_CHARS_MAX)));
  terminal.write(formatTable(headings, cells));
}
