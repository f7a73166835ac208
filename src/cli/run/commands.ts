/** Commands in the conversation: lines that begin with a slash. */
import { messageOf } from "../../base/index.ts";
import { parseModelfile } from "../../library/portable.ts";
import { list } from "../commands/list.ts";
import { describe } from "../commands/show.ts";
import type { CliContext } from "../terminal/context.ts";
import { withModel } from "../client/missing-model.ts";
import { THINK_VALUES } from "../terminal/think.ts";
import { takesOf, type Chat } from "./chat.ts";
import type { PromptLines } from "./prompt-lines.ts";

interface Desk {
  readonly context: CliContext;
  readonly chat: Chat;
  readonly lines: PromptLines;
}

type Command = (desk: Desk, rest: string) => Promise<void> | void;

const HELP = `Available Commands:
  /set            Set session variables
  /show           Show model information
  /load <model>   Load another model
  /save <model>   Save this session as a model
  /clear          Forget the conversation
  /list           List the models
  /bye            Exit
  /?, /help       Help for a command
  /? shortcuts    Keyboard shortcuts

Use """ to begin and end a message of several lines.
Paths of images in a message are sent as images to models with vision.
`;

const HELP_SET = `Available Commands:
  /set parameter <name> <value>  Set a parameter
  /set system <text>             Set the system message
  /set history                   Save prompts
  /set nohistory                 Stop saving prompts
  /set wordwrap                  Break lines at words
  /set nowordwrap                Stop breaking lines at words
  /set format json               Ask for JSON
  /set noformat                  Ask for text again
  /set verbose                   Show statistics after every answer
  /set quiet                     Stop showing statistics
  /set think [level]             Let the model think before it answers
  /set nothink                   Let the model answer without thinking
`;

const HELP_SHOW = `Available Commands:
  /show info         Show details of this model
  /show license      Show its license
  /show modelfile    Show its Modelfile
  /show parameters   Show its parameters, and this session's
  /show system       Show the system message
  /show template     Show the prompt template
`;

const HELP_SHORTCUTS = `Available keyboard shortcuts:
  Ctrl + a / Ctrl + e   Beginning and end of the line
  Alt + b / Alt + f     One word back and forth
  Ctrl + k / Ctrl + u   Delete to the end or the beginning of the line
  Ctrl + w              Delete the word before the cursor
  Up / Down             Earlier and later prompts
  Ctrl + r              Search earlier prompts
  Ctrl + g              Write the message in $VISUAL or $EDITOR
  Ctrl + l              Clear the screen
  Ctrl + c              Stop the answer
  Ctrl + d              Exit
`;

/** Runs a command. False: the user wants to leave. Throws an error to show. */
export async function runCommand(desk: Desk, line: string): Promise<boolean> {
  const [name = ""] = line.split(/\s/, 1);
  if (name === "/bye" || name === "/exit") return false;
  const command = COMMANDS[name];
  if (!command) throw new Error(`unknown command '${line}'; type /? for help`);
  await command(desk, line.slice(name.length).trim());
  return true;
}

const help: Command = ({ context }, topic) => {
  const texts: Record<string, string> = {
    set: HELP_SET,
    "/set": HELP_SET,
    show: HELP_SHOW,
    "/show": HELP_SHOW,
    shortcut: HELP_SHORTCUTS,
    shortcuts: HELP_SHORTCUTS,
  };
  context.terminal.write(`${Object.hasOwn(texts, topic) ? texts[topic] : HELP}\n`);
};

const COMMANDS: Readonly<Record<string, Command | undefined>> = {
  __proto__: null as never,
  "/?": help,
  "/help": help,
  "/set": set,
  "/show": show,
  "/list": ({ context }, prefix) => list(context, prefix),
  "/clear": ({ context, chat }) => {
    chat.messages = [];
    context.terminal.write("Cleared session context\n");
  },
  async "/load"({ context, chat }, model) {
    if (model === "") throw new Error("usage: /load <model>");
    const { client } = context;
    const shown = await withModel(client, model, () => client.post("/api/show", { model }));
    Object.assign(chat.settings, {
      model,
      system: undefined,
      options: {},
      takes: takesOf(shown),
    });
    chat.messages = [];
    context.terminal.write(`Loaded '${model}'\n`);
  },
  async "/save"({ context, chat }, name) {
    if (name === "") throw new Error("usage: /save <model>");
    await context.client.post("/api/create", chat.saved(name));
    context.terminal.write(`Created new model '${name}'\n`);
  },
};

const SWITCHES: Readonly<Record<string, (desk: Desk) => string>> = {
  history: ({ lines }) => ((lines.keepsHistory = true), "Prompts are saved."),
  nohistory: ({ lines }) => ((lines.keepsHistory = false), "Prompts are no longer saved."),
  wordwrap: ({ chat }) => ((chat.settings.wordWrap = true), "Set 'wordwrap' mode."),
  nowordwrap: ({ chat }) => ((chat.settings.wordWrap = false), "Set 'nowordwrap' mode."),
  verbose: ({ chat }) => ((chat.settings.verbose = true), "Set 'verbose' mode."),
  quiet: ({ chat }) => ((chat.settings.verbose = false), "Set 'quiet' mode."),
  noformat: ({ chat }) => ((chat.settings.format = undefined), "Disabled format."),
  nothink: ({ chat }) => ((chat.settings.think = false), "Set 'nothink' mode."),
};

function set(desk: Desk, rest: string): void {
  const { context, chat } = desk;
  const [what = ""] = rest.split(/\s/, 1);
  const value = rest.slice(what.length).trim();
  const say = (line: string): void => context.terminal.write(`${line}\n`);
  if (Object.hasOwn(SWITCHES, what) && value === "") return say(SWITCHES[what]?.(desk) ?? "");
  switch (what) {
    case "":
      return context.terminal.write(`${HELP_SET}\n`);
    case "parameter":
      return say(setParameter(chat, value));
    case "system":
      if (value === "") throw new Error("usage: /set system <text>");
      chat.settings.system = unquoted(value);
      return say("Set system message.");
    case "format":
      if (value !== "json") throw new Error("invalid or missing format; for JSON use '/set format json'");
      chat.settings.format = value;
      return say("Set format to 'json' mode.");
    case "think":
      chat.settings.think = thinkLevel(value);
      return say(`Set 'think' mode${value === "" ? "" : ` to '${value}'`}.`);
    default:
      throw new Error(`unknown command '/set ${rest}'; type /? set for help`);
  }
}

function thinkLevel(value: string): boolean | string {
  if (value === "" || value === "true") return true;
  if (value === "false") return false;
  if (THINK_VALUES.has(value)) return value;
  throw new Error(`expected one of ${[...THINK_VALUES].join(", ")}, got '${value}'`);
}

const unquoted = (text: string): string => /^("""|")([\s\S]*)\1$/.exec(text)?.[2] ?? text;

/** Parsed as in a Modelfile; several words are several stop texts, and a quoted text is one. */
function setParameter(chat: Chat, rest: string): string {
  const [name = "", ...values] = rest.match(/"[^"]*"(?!\S)|\S+/g) ?? [];
  if (name === "" || values.length === 0) throw new Error("usage: /set parameter <name> <value>");
  const lines = name === "stop" ? values : [values.join(" ")];
  const text = ["FROM x", ...lines.map((value) => `PARAMETER ${name} ${value}`)].join("\n");
  const parsed = parameterOf(text, name);
  chat.settings.options = { ...chat.settings.options, [name]: parsed };
  return `Set parameter '${name}' to '${values.join(", ")}'`;
}

function parameterOf(text: string, name: string): unknown {
  try {
    return parseModelfile(text).parameters[name];
  } catch (error) {
    throw new Error(messageOf(error).replace(/^\(line \d+\): (PARAMETER )?/, ""), { cause: error });
  }
}

async function show({ context, chat }: Desk, what: string): Promise<void> {
  if (what === "") return context.terminal.write(`${HELP_SHOW}\n`);
  const reply = await context.client.post("/api/show", { model: chat.settings.model });
  const say = (text: unknown, missing: string): void =>
    context.terminal.write(typeof text === "string" && text !== "" ? `${text.trimEnd()}\n\n` : `${missing}\n\n`);
  switch (what) {
    case "info":
      return context.terminal.write(describe(reply, false));
    case "license":
      return say(reply["license"], "No license was specified for this model.");
    case "modelfile":
      return say(reply["modelfile"], "This model has no Modelfile.");
    case "parameters":
      say(reply["parameters"], "No additional parameters were specified for this model.");
      return say(optionLines(chat.settings.options), "No parameters were set in this session.");
    case "system":
      return say(chat.settings.system ?? reply["system"], "No system message was specified for this model.");
    case "template":
      return say(reply["template"], "No prompt template was specified for this model.");
    default:
      throw new Error(`unknown command '/show ${what}'; type /? show for help`);
  }
}

function optionLines(options: Readonly<Record<string, unknown>>): string {
  const lines = Object.entries(options).map(([name, value]) => `  ${name}    ${String(value)}`);
  return lines.length === 0 ? "" : `User defined parameters:\n${lines.join("\n")}`;
}
