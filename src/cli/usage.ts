/** Errors of incomplete commands: their usage, and the available models. */
import { Command } from "commander";
import type { ConfigSources } from "../base/config/index.ts";

const NAMES_SHOWN = 8;

export class MissingArgument extends Error {
  override readonly name = "MissingArgument";
  readonly command: Command;
  readonly argument: string;

  constructor(command: Command, argument: string) {
    super(`missing argument '${argument}'`);
    this.command = command;
    this.argument = argument;
  }
}

/** A command that throws `MissingArgument` instead of ending the process. */
export class HearthCommand extends Command {
  override createCommand(name?: string): HearthCommand {
    return new HearthCommand(name);
  }

  /** The parser calls it. */
  missingArgument(name: string): never {
    throw new MissingArgument(this, name);
  }
}

/** Usage lines for a missing argument. */
export async function usageLines(
  { message, command, argument }: MissingArgument,
  sources: ConfigSources,
): Promise<string[]> {
  const lines = [`Error: ${message}`, `Usage: ${pathOf(command)} ${command.usage()}`];
  if (!/^(--model|models?|source)$/.test(argument) || command.name() === "create") return lines;
  const names = await namesAt(sources);
  if (names.length === 0) return lines;
  const more = names.length > NAMES_SHOWN ? `, and ${names.length - NAMES_SHOWN} more: hearth list` : "";
  return [...lines, `Models: ${names.slice(0, NAMES_SHOWN).join(", ")}${more}`];
}

async function namesAt(sources: ConfigSources): Promise<string[]> {
  const { clientSettings } = await import("./client/address.ts");
  const { Client } = await import("./client/client.ts");
  const { modelNames } = await import("./client/missing-model.ts");
  try {
    return await modelNames(new Client(clientSettings(sources).server));
  } catch {
    return []; // print the usage without models
  }
}

function pathOf(command: Command): string {
  return command.parent ? `${pathOf(command.parent)} ${command.name()}` : command.name();
}
