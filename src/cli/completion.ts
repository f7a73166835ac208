/**
 * Shell completion: candidates for the next word of a command line: commands, flags, values of flags and names of
 * models. The scripts of `completion-scripts.ts` call `hearth __complete -- WORD...`; the last word is being typed.
 */
import type { Argument, Command, Option } from "commander";
import { BACKEND_CHOICES } from "../base/index.ts";
import type { Client, Json } from "./client/client.ts";
import { QUANTIZE_TYPES } from "./developers.ts";
import { THINK_VALUES } from "./terminal/think.ts";

const ANSWER_MS = 1000;
/** A shell may execute characters of a name, so only names of harmless characters are offered. */
const NAME = /^[A-Za-z0-9][\w./:-]*$/;
const VALUES: Readonly<Record<string, readonly string[]>> = {
  think: [...THINK_VALUES],
  backend: BACKEND_CHOICES,
  format: ["json"],
  quantize: QUANTIZE_TYPES,
  draftQuantize: QUANTIZE_TYPES,
  state: ["queued", "running", "succeeded", "failed", "dead", "cancelled"],
};

/**
 * @param words of the command line after the program's name
 * @param client of a server, which may be down
 */
export async function candidates(program: Command, words: readonly string[], client: () => Client): Promise<string[]> {
  const typed = words.at(-1) ?? "";
  const { command, given, awaiting } = walk(program, words.slice(0, -1));
  const found = await candidatesFor({ command, given, awaiting, typed, client });
  return [...new Set(found)].filter((each) => each.startsWith(typed));
}

interface Place {
  readonly command: Command;
  /** Number of arguments so far. */
  readonly given: number;
  /** The flag whose value comes next. */
  readonly awaiting: Option | undefined;
}

function walk(program: Command, words: readonly string[]): Place {
  let command = program;
  let given = 0;
  let awaiting: Option | undefined;
  for (const word of words) {
    if (awaiting) awaiting = undefined;
    else if (word.startsWith("-"))
      awaiting = command.options.find(({ long, short, required }) => required && (word === long || word === short));
    else {
      const inner = given === 0 ? visibleOf(command).find((each) => namesOf(each).includes(word)) : undefined;
      if (inner) command = inner;
      else given++;
    }
  }
  return { command, given, awaiting };
}

async function candidatesFor({
  command,
  given,
  awaiting,
  typed,
  client,
}: Place & { typed: string; client: () => Client }): Promise<readonly string[]> {
  if (awaiting?.attributeName() === "model") return modelNames(command, client);
  if (awaiting) return VALUES[awaiting.attributeName()] ?? [];
  if (typed.startsWith("-")) {
    return [...command.options.filter(({ hidden }) => !hidden).map(({ long, short }) => long ?? short ?? ""), "--help"];
  }
  const inner = given === 0 ? visibleOf(command).map((each) => each.name()) : [];
  if (inner.length > 0) return inner;
  const argument = command.registeredArguments[given] ?? variadicOf(command);
  return argument ? argumentCandidates(argument, command, client) : [];
}

const variadicOf = (command: Command): Argument | undefined =>
  command.registeredArguments.at(-1)?.variadic ? command.registeredArguments.at(-1) : undefined;

async function argumentCandidates(
  argument: Argument,
  command: Command,
  client: () => Client,
): Promise<readonly string[]> {
  if (argument.argChoices) return argument.argChoices;
  if (argument.name() === "type") return QUANTIZE_TYPES;
  const isModel = command.name() !== "create" && /^(models?|source|prefix)$/.test(argument.name());
  return isModel ? modelNames(command, client) : [];
}

async function modelNames(command: Command, client: () => Client): Promise<readonly string[]> {
  const path = { pull: "/api/catalogue", ps: "/api/ps", stop: "/api/ps" }[command.name()] ?? "/api/tags";
  try {
    const { models } = await client().get(path, AbortSignal.timeout(ANSWER_MS));
    return (models as Json[]).map(({ name }) => String(name)).filter((name) => NAME.test(name));
  } catch {
    return []; // no server: nothing to offer
  }
}

const visibleOf = (command: Command): Command[] => command.createHelp().visibleCommands(command) as Command[];
const namesOf = (command: Command): string[] => [command.name(), ...command.aliases()];
