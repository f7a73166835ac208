/** `hearth gateway export` and `import`, and `hearth migrate`: the gateway's database, without a server. */
import type { Command } from "commander";
import { failing, type CliParts } from "../terminal/failing.ts";
import type { Terminal } from "../terminal/terminal.ts";

export function addGatewayCommands(program: Command, parts: CliParts): void {
  const config = ["--config <file>", "configuration file (JSON5)"] as const;
  const sources = (flags: { config?: string }) => ({ ...parts, flags: { ...parts.flags, ...flags } });
  const gateway = program.command("gateway").description("move the state to another database");
  gateway
    .command("export <file>")
    .description("write the gateway's state to a file; stop the gateway first")
    .option(...config)
    .action(
      failing(parts, async (terminal, file: string, flags: { config?: string }) => {
        const { exportGateway } = await transfer();
        tell(terminal, `exported to ${file}`, await exportGateway(sources(flags), file));
      }),
    );
  gateway
    .command("import <file>")
    .description("fill an empty database from an export, all or nothing")
    .option(...config)
    .action(
      failing(parts, async (terminal, file: string, flags: { config?: string }) => {
        const { importGateway } = await transfer();
        tell(terminal, `imported from ${file}`, await importGateway(sources(flags), file));
      }),
    );
  program
    .command("migrate")
    .description("update the tables of the database")
    .option(...config)
    .action(
      failing(parts, async (terminal, flags: { config?: string }) => {
        const { migrateGateway } = await transfer();
        terminal.write(`${await migrateGateway(sources(flags))}\n`);
      }),
    );
}

const transfer = () => import("../../gateway/operate/transfer/index.ts");

function tell(terminal: Terminal, what: string, counts: Readonly<Record<string, number>>): void {
  const rows = Object.entries(counts).map(([table, n]) => `${n} ${table}`);
  terminal.write(`${what}: ${rows.length === 0 ? "no rows" : rows.join(", ")}\n`);
}
