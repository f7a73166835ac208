/** Chooses a model if the command names none: an installed one, or a first one to pull. */
import { ask } from "../terminal/ask.ts";
import type { Json } from "../client/client.ts";
import type { CliContext } from "../terminal/context.ts";
import { formatBytes, formatTable } from "../terminal/format.ts";

const SHOWN_MAX = 9;
/** The model that ships with Hearth. */
const EMBEDDED = "hearth:latest";

interface Choice {
  readonly name: string;
  readonly columns: readonly string[];
}

/** Asks the user. Throws `Interrupted` at Ctrl+C. */
export async function chooseModel(context: CliContext): Promise<string> {
  const { client, terminal } = context;
  const models = await client.models("/api/tags");
  const chatting = models.filter(({ capabilities }) => capabilities?.includes("completion") ?? true);
  const own = chatting.filter(({ name }) => name !== EMBEDDED);
  if (own.length > 0) {
    const choices = own.slice(0, SHOWN_MAX).map(({ name, size }) => ({ name, columns: [formatBytes(size)] }));
    return choose(context, { heading: "Models that are here:", choices, initial: own[0]?.["name"] });
  }
  const hasEmbedded = chatting.length > 0;
  const choices = await suggestions(context);
  if (choices.length === 0 && hasEmbedded) return EMBEDDED;
  if (choices.length === 0) throw new Error("there is no model here: 'hearth pull NAME' gets one");
  terminal.write(hasEmbedded ? "Only the small model that ships with Hearth is here.\n" : "There is no model here.\n");
  const initial = hasEmbedded ? EMBEDDED : choices[0]?.name;
  return choose(context, { heading: "These are useful, and fit this machine:", choices, initial });
}

async function suggestions({ client }: CliContext): Promise<Choice[]> {
  const { suggested, models } = await client.get("/api/catalogue").catch((): Json => ({ suggested: [], models: [] }));
  return (suggested as string[]).flatMap((name) =>
    (models as Json[])
      .filter((model) => model["name"] === name)
      .map(({ size, description }) => ({ name, columns: [`${formatBytes(size)} to download`, description] })),
  );
}

interface Question {
  readonly heading: string;
  readonly choices: readonly Choice[];
  readonly initial: string | undefined;
}

async function choose({ terminal }: CliContext, { heading, choices, initial }: Question): Promise<string> {
  const rows = choices.map(({ name, columns }, at) => [`  ${at + 1}`, name, ...columns]);
  terminal.write(`${heading}\n${formatTable([], rows)}`);
  for (;;) {
    const answer = await ask(terminal, { about: "Number or name", ...(initial === undefined ? {} : { initial }) });
    if (!/^\d+$/.test(answer)) return answer;
    const choice = choices[Number(answer) - 1];
    if (choice) return choice.name;
    terminal.note(`expected a number from 1 to ${choices.length}, or a name`);
  }
}
