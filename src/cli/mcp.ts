/** The commands of `hearth mcp`: the tool servers of the configuration, without a server of ours. */
import type { Command } from "commander";
import { failing, type CliParts } from "./terminal/failing.ts";
import type * as Commands from "./commands/mcp.ts";

export function addMcpCommands(program: Command, parts: CliParts): void {
  const config = ["--config <file>", "configuration file (JSON5)"] as const;
  const json = ["--json", "print it as JSON"] as const;
  const act = <Args extends unknown[]>(
    work: (code: typeof Commands, context: Commands.McpContext, args: Args) => Promise<void>,
  ) =>
    failing(parts, async (terminal, ...args: [...Args, { config?: string; json?: boolean }]) => {
      const words = args.slice(0, -2) as unknown as Args; // the flags and the command come last
      const flags = args.at(-2) as { config?: string; json?: boolean };
      const { json = false, ...others } = flags;
      const sources = { ...parts, flags: { ...parts.flags, ...others } };
      const code = await import("./commands/mcp.ts");
      await work(code, { terminal, sources, json }, words);
    });
  const mcp = program.command("mcp").description("inspect the tool servers (MCP) of the configuration");
  mcp
    .command("list")
    .description("list the configured servers; starts none")
    .option(...config)
    .option(...json)
    .action(act((code, context) => code.listServers(context)));
  mcp
    .command("test [name]")
    .description("connect to each server, or to one, and count its tools")
    .option(...config)
    .option(...json)
    .action(act((code, context, [name]: [string | undefined]) => code.testServers(context, name)));
  mcp
    .command("tools <name>")
    .description("list the tools of a server")
    .option(...config)
    .option(...json)
    .action(act((code, context, [name]: [string]) => code.listTools(context, name)));
}
