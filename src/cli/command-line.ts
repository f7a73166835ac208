/**
 * The command line. Each command imports its code when it runs: `hearth serve` needs no terminal, `hearth list` no
 * kernels, and imports take most of a process's start time.
 */
import { homedir } from "node:os";
import type { Argument, Command } from "commander";
import { API_VERSION, BACKENDS_IN_WORDS, messageOf, nearest, once, VERSION } from "../base/index.ts";
import { reachHereDirectly } from "../base/config/index.ts";
import { selfCommand } from "../base/system.ts";
import type { CliParts } from "./terminal/failing.ts";
import { makeTerminal } from "./terminal/terminal.ts";
import { withThinkValue } from "./terminal/think.ts";
import { HearthCommand, MissingArgument, usageLines } from "./usage.ts";

type Env = NodeJS.ProcessEnv;

/** Words of `hearth serve`, the default command. */
const SERVES: readonly (string | undefined)[] = [undefined, "serve", "start"];

/** Runs the command in the arguments. Ends the process with code 1 on failure. */
export async function runCommandLine(env: Env): Promise<void> {
  reachHereDirectly(env);
  const terminal = once(() => makeTerminal(process, env));
  const parts = { env, flags: {}, home: homedir(), process, terminal };
  const program = new HearthCommand("hearth")
    .description("Runs language models on this machine and serves them over HTTP")
    .version(`hearth ${VERSION} (speaks the API of Ollama ${API_VERSION})`, "-v, --version")
    .enablePositionalOptions() // a command may have its own -v
    .configureHelp({ subcommandTerm: termOf })
    .configureOutput({
      writeOut: (text) => terminal().write(text),
      writeErr: (text) => terminal().note(text.trimEnd()),
      outputError: (text, write) => write(text.replace(/^error: /, "Error: ")),
    })
    .addHelpText("after", "\nWithout a command, hearth serves, as 'hearth serve' does.");
  const [, , word] = process.argv;
  if (SERVES.includes(word)) addServe(program, env);
  else await addAll(program, parts, word === "help" ? process.argv[3] : word);
  try {
    await program.parseAsync(withThinkValue(process.argv));
  } catch (error) {
    const lines = error instanceof MissingArgument ? await usageLines(error, parts) : [`Error: ${messageOf(error)}`];
    for (const line of lines) terminal().note(line);
    process.exit(1);
  }
}

async function addAll(program: Command, parts: CliParts, word: string | undefined): Promise<void> {
  const { addCommands, GROUPS } = await import("./index.ts");
  program.commandsGroup(GROUPS.everyday);
  addServe(program, parts.env);
  addCommands(program, parts);
  refuseUnknown(program, word);
}

/** A command in the help: its name and its arguments. */
const termOf = (command: Command): string =>
  [command.name(), ...command.registeredArguments.map((argument) => nameOf(argument))].join(" ");

function nameOf(argument: Argument): string {
  const name = `${argument.name()}${argument.variadic ? "..." : ""}`;
  return argument.required ? `<${name}>` : `[${name}]`;
}

function addServe(program: Command, env: Env): void {
  program
    .command("serve", { isDefault: true })
    .alias("start")
    .description("start the server; the default command")
    .option("--config <file>", "configuration file (JSON5)")
    .option("--host <address>", "address to listen on, host:port")
    .option("--models <folder>", "model store")
    .option("--backend <name>", BACKENDS_IN_WORDS)
    .action((flags: Record<string, string>) =>
      import("./serve.ts").then(({ serve }) => serve({ env, flags, home: homedir(), command: selfCommand() })),
    );
}

/** Otherwise an unknown command would be an extra argument of the default one. */
function refuseUnknown(program: Command, word: string | undefined): void {
  if (word === undefined || word.startsWith("-") || word === "help") return;
  const names = program.commands.flatMap((command) => [command.name(), ...command.aliases()]);
  if (names.includes(word)) return;
  const meant = nearest(word, names);
  const hint = meant === undefined ? "see hearth --help" : `did you mean '${meant}'? See hearth --help`;
  program.error(`error: unknown command '${word}': ${hint}`);
}
