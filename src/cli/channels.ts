/** `hearth channels`: its commands, with their flags. */
import type { Command } from "commander";
import type { ConfigSources } from "../base/config/index.ts";
import { failing, type CliParts } from "./terminal/failing.ts";
import type { TestOptions } from "./commands/channels.ts";

export function addChannelsCommands(program: Command, parts: CliParts): void {
  const channels = program
    .command("channels")
    .description("try the chat platforms of the configuration")
    .enablePositionalOptions(false) // --config may follow the command
    .option("--config <file>", "configuration file (JSON5)");
  const sources = (): ConfigSources => ({ ...parts, flags: { ...parts.flags, ...channels.opts() } });
  channels
    .command("check")
    .description("check that each platform accepts our credentials; sends no message")
    .action(failing(parts, async (terminal) => (await commands()).checkAll({ terminal, sources: sources() })));
  channels
    .command("test")
    .description("send a test message")
    .argument("<channel>", "such as slack or telegram")
    .option("--to <recipient>", "the recipient; default: the channel's defaultTo")
    .option("-m, --message <text>", "the text to send")
    .action(
      failing(parts, async (terminal, channel: string, options: TestOptions) =>
        (await commands()).sendTest({ terminal, sources: sources() }, channel, options),
      ),
    );
}

const commands = () => import("./commands/channels.ts");
