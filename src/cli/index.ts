/** All commands but `serve`, with their flags. */
import { Argument, InvalidArgumentError, type Command } from "commander";
import { clientSettings } from "./client/address.ts";
import { addChannelsCommands } from "./channels.ts";
import { Client } from "./client/client.ts";
import { addGatewayCommands } from "./commands/gateway.ts";
import { addDeveloperCommands, wholeNumber } from "./developers.ts";
import { COMPLETION_SCRIPTS, SHELLS, type Shell } from "./completion-scripts.ts";
import type { ToolName } from "./run/launch.ts";
import { addInstallationCommands } from "./installation.ts";
import { interruptible, type CliContext } from "./terminal/context.ts";
import { failing, type CliParts } from "./terminal/failing.ts";
import { addHooksCommands } from "./hooks.ts";
import { addMcpCommands } from "./mcp.ts";
import { THINK_VALUES } from "./terminal/think.ts";
import { MissingArgument } from "./usage.ts";

/** Adds them in the order of the help; `serve` is there already. */
export function addCommands(program: Command, parts: CliParts): void {
  const does: Does = (load) => withContext(parts, load);
  addRun(program, parts, does);
  addLists(program, does);
  addLaunch(program, parts, does);
  program.commandsGroup(GROUPS.models);
  addModelCommands(program, does);
  program.commandsGroup(GROUPS.tools);
  addMcpCommands(program, parts);
  program.commandsGroup(GROUPS.gateway);
  addHooksCommands(program, parts);
  addChannelsCommands(program, parts);
  addGatewayCommands(program, parts);
  program.commandsGroup(GROUPS.installation);
  addInstallationCommands(program, parts);
  addElsewhere(program, parts);
  program.commandsGroup(GROUPS.developers).helpCommand("help [command]", "show the help of a command");
  addDeveloperCommands(program, parts);
  addCompletion(program, parts);
}

/** Headings of the help, the most used commands first. */
export const GROUPS = {
  everyday: "Everyday:",
  models: "Models:",
  tools: "Tools:",
  gateway: "Gateway:",
  installation: "This program:",
  developers: "For developers:",
} as const;

/** `completion`, and the hidden command that its scripts call. */
function addCompletion(program: Command, parts: CliParts): void {
  program
    .command("completion")
    .description("print the completion script of a shell")
    .addArgument(new Argument("<shell>").choices(SHELLS))
    .action(failing(parts, async (terminal, shell: Shell) => terminal.write(COMPLETION_SCRIPTS[shell])));
  program
    .command("__complete", { hidden: true })
    .argument("[words...]")
    .action(
      failing(parts, async (terminal, words: string[]) => {
        const { candidates } = await import("./completion.ts");
        const typed = words.map((word) => (word === '""' ? "" : word)); // PowerShell sends an empty word in this form
        const found = await candidates(program, typed, () => new Client(clientSettings(parts).server));
        terminal.write(found.map((each) => `${each}\n`).join(""));
      }),
    );
}

const INSECURE = ["--insecure", "allow plain HTTP and untrusted certificates"] as const;
const JSON_FLAG = ["--json", "print it as JSON"] as const;
const PREFIX = ["[prefix]", "only models whose name begins with this"] as const;

function addLists(program: Command, does: Does): void {
  program
    .command("models")
    .description("list models to pull, and which fit this machine")
    .option("--all", "include models that do not fit")
    .option(...JSON_FLAG)
    .action(does(async () => (await import("./commands/models.ts")).models));
  program
    .command("list")
    .alias("ls")
    .description("list the models that are here")
    .argument(...PREFIX)
    .option(...JSON_FLAG)
    .action(does(async () => (await import("./commands/list.ts")).list));
  program
    .command("ps")
    .description("list the models in memory")
    .argument(...PREFIX)
    .option(...JSON_FLAG)
    .action(does(async () => (await import("./commands/ps.ts")).ps));
  program
    .command("stop <model>")
    .description("take a model out of memory, once its requests are done")
    .option("--force", "do not wait: running requests fail")
    .action(does(async () => (await import("./commands/manage.ts")).stop));
}

/** Names of `commands/launch.ts`, which is loaded on demand. */
const LAUNCHED = [
  "claude",
  "codex",
  "opencode",
  "qwen",
  "continue",
  "pi",
  "cline",
  "aider",
] as const satisfies readonly ToolName[];

function addLaunch(program: Command, parts: CliParts, does: Does): void {
  const { env, terminal } = parts;
  const act = does(async () => {
    const { launch } = await import("./run/launch.ts");
    return async (context, tool: ToolName, args: readonly string[], model: string | undefined) => {
      const { server } = clientSettings(parts);
      parts.process.exitCode = await launch(context, { tool, args, model, env, server });
    };
  });
  program
    .command("launch")
    .description("start a coding agent with a model")
    .addArgument(new Argument("<tool>", "an agent that is installed here").choices(LAUNCHED))
    .argument("[args...]", "arguments for the agent, after --")
    .option("--model <name>", "the model; without it, choose one")
    .option("--undo", "start nothing; say whether settings were changed")
    .addHelpText(
      "after",
      "\nThe agent's settings stay as they are: it gets the server and the model for this start only.",
    )
    .action(async (tool: ToolName, args: string[], options: { model?: string; undo?: true }, command: Command) => {
      const { model, undo } = options;
      if (undo) return terminal().note(`launch changes no settings of ${tool}: there is nothing to undo`);
      if (model === undefined && !terminal().isInteractive) throw new MissingArgument(command, "--model");
      await act(tool, args, model);
    });
}

function addModelCommands(program: Command, does: Does): void {
  program
    .command("pull <model>")
    .description("download a model")
    .option(...INSECURE)
    .action(does(async () => (await import("./commands/transfer.ts")).pull));
  program
    .command("push <model>")
    .description("upload a model")
    .option(...INSECURE)
    .action(does(async () => (await import("./commands/transfer.ts")).push));
  program
    .command("show <model>")
    .description("show details of a model")
    .option("--license", "show its license")
    .option("--modelfile", "show its Modelfile")
    .option("--parameters", "show its parameters")
    .option("--system", "show its system message")
    .option("--template", "show its prompt template")
    .option("-v, --verbose", "show metadata and tensors too")
    .option(...JSON_FLAG)
    .action(does(async () => (await import("./commands/show.ts")).show));
  program
    .command("create <model>")
    .description("make a model from a Modelfile")
    .option("-f, --file <file>", "Modelfile (default: Modelfile); - reads standard input")
    .option("-q, --quantize <type>", "quantize to this type, such as q4_K_M")
    .option("--draft-quantize <type>", "quantize the draft model to this type")
    .option(...INSECURE)
    .action(does(async () => (await import("./commands/create.ts")).create));
  program
    .command("cp <source> <destination>")
    .description("copy a model")
    .action(does(async () => (await import("./commands/manage.ts")).copy));
  program
    .command("rm <models...>")
    .description("delete models")
    .action(does(async () => (await import("./commands/manage.ts")).remove));
}

type Work<Args extends unknown[]> = (context: CliContext, ...args: Args) => Promise<void>;

/** An action whose code is imported on demand. */
type Does = <Args extends unknown[]>(load: () => Promise<Work<Args>>) => (...args: Args) => Promise<void>;

function addRun(program: Command, parts: CliParts, does: Does): void {
  const { env, terminal } = parts;
  const act = does(async () => {
    const { run } = await import("./run/run.ts");
    return (context, model: string | undefined, words: string[], flags: Record<string, any>) =>
      run(context, model, words, {
        ...flags,
        wordwrap: !flags["nowordwrap"],
        history: !flags["nohistory"] && !isSet(env["OLLAMA_NOHISTORY"]),
      });
  });
  program
    .command("run")
    .description("ask a model, or talk with it")
    .argument("[model]", "its name, a GGUF file, or a folder of weights; a model that is not here is pulled")
    .argument("[prompt...]", "what to ask; standard input comes before it")
    .option("--keepalive <duration>", "how long the model stays loaded afterwards, such as 5m")
    .option("-v, --verbose", "show statistics after the answer")
    .option(...INSECURE)
    .option("--nowordwrap", "do not break lines at words")
    .option("--nohistory", "do not save prompts")
    .option("--format <format>", "json, or a JSON schema")
    .option("--think [level]", "let the model think first: true, false, low, medium, high or max", parseThink)
    .option("--hidethinking", "do not show the model's thoughts")
    .option("--tools [servers]", "let the model use tools of the server's tool servers (MCP), all or some")
    .option("--truncate [yes]", "embedding models: cut text that is too long (default) or refuse it", parseYes)
    .option("--dimensions <n>", "embedding models: length of the vector", wholeNumber)
    .action(async (model: string | undefined, words: string[], flags: Record<string, any>, command: Command) => {
      if (model === undefined && !terminal().isInteractive) throw new MissingArgument(command, "model");
      await act(model, words, flags);
    });
}

/** Commands of other programs that users may try here. */
const ELSEWHERE: readonly (readonly [names: readonly string[], what: string])[] = [
  [["signin", "login"], "there is nothing to sign in to: every model runs on this machine"],
  [["signout", "logout"], "Hearth has no accounts: every model runs on this machine"],
];

function addElsewhere(program: Command, parts: CliParts): void {
  for (const [[name = "", ...aliases], what] of ELSEWHERE) {
    program
      .command(name, { hidden: true })
      .aliases(aliases)
      .description(what)
      .allowUnknownOption()
      .argument("[words...]")
      .action(failing(parts, () => Promise.reject(new Error(what))));
  }
}

function parseThink(text: string): string {
  if (THINK_VALUES.has(text)) return text;
  throw new InvalidArgumentError(`expected ${[...THINK_VALUES].join(", ")}`);
}

const isSet = (value: string | undefined): boolean => Boolean(value) && parseYes(value ?? "");

const parseYes = (text: string): boolean => !/^(false|f|0|no)$/i.test(text);

/** An action that gets its context. */
function withContext<Args extends unknown[]>(
  parts: CliParts,
  load: () => Promise<Work<Args>>,
): (...args: Args) => Promise<void> {
  return failing(parts, async (terminal, ...args: Args) => {
    const { server, home } = clientSettings(parts);
    const editor = parts.env["VISUAL"] || parts.env["EDITOR"] || undefined;
    const work = await load();
    await work({ client: new Client(server), terminal, home, editor, nowMs: Date.now, interruptible }, ...args);
  });
}
