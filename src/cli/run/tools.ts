/** Tools of tool servers in `hearth run --tools`: a call is made once the user at the terminal allows it. */
import { messageOf } from "../../base/index.ts";
import { oneLine } from "../../gateway/agent/boundary/index.ts";
import type { Json } from "../client/client.ts";
import { ask } from "../terminal/ask.ts";
import type { CliContext } from "../terminal/context.ts";

/** Maximum number of answers of the model to one question. */
export const ROUNDS_MAX = 10;
const ARGUMENTS_CHARS_MAX = 400;
const RESULT_CHARS_MAX = 200;

interface Offered {
  readonly server: string;
  readonly tool: string;
  /** True if it is called without a question. */
  readonly harmless: boolean;
  readonly definition: object;
}

export class RunTools {
  readonly #context: CliContext;
  /** By the model's name. */
  readonly #offered: ReadonlyMap<string, Offered>;
  /** Tools about which the user decided until the end of the conversation. */
  readonly #settled = new Map<string, "always" | "never">();

  constructor(context: CliContext, offered: ReadonlyMap<string, Offered>) {
    this.#context = context;
    this.#offered = offered;
  }

  /** For `tools` of a chat. */
  get definitions(): readonly object[] {
    return [...this.#offered.values()].map(({ definition }) => definition);
  }

  /** Executes a call and returns its result as the next message for the model; a refused call has a result, too. */
  async run({ id, function: { name, arguments: args } }: Json, signal: AbortSignal): Promise<Json> {
    const content = await this.#resultOf(String(name), args, signal);
    return { role: "tool", tool_name: name, content, ...(id === undefined ? {} : { tool_call_id: id }) };
  }

  async #resultOf(name: string, args: unknown, signal: AbortSignal): Promise<string> {
    const { client, terminal } = this.#context;
    const found = this.#offered.get(name);
    if (!found) return "error: there is no such tool";
    const { server, tool } = found;
    terminal.note(`${server}/${tool} ${oneLine(JSON.stringify(args), ARGUMENTS_CHARS_MAX)}`);
    if (!(await this.#mayCall(name, found))) {
      terminal.note("not called");
      return "error: the person refused this call";
    }
    try {
      const { text, content } = await client.post("/api/mcp/call", { server, tool, arguments: args }, signal);
      terminal.note(`→ ${oneLine(String(text), RESULT_CHARS_MAX)}`);
      return String(content);
    } catch (error) {
      if (signal.aborted) throw error;
      terminal.note(`→ ${oneLine(messageOf(error), RESULT_CHARS_MAX)}`);
      return `error: ${messageOf(error)}`;
    }
  }

  /** Without a user at the terminal, only harmless tools are called. */
  async #mayCall(name: string, { harmless }: Offered): Promise<boolean> {
    const { terminal } = this.#context;
    const settled = this.#settled.get(name);
    if (harmless || settled === "always") return true;
    if (settled === "never" || !terminal.isInteractive) return false;
    for (;;) {
      const word = await ask(terminal, { about: "Call it? yes, always, no, never", initial: "no" });
      const answer = ANSWERS.find((each) => each.startsWith(word.toLowerCase()));
      if (answer === "always" || answer === "never") this.#settled.set(name, answer);
      if (answer !== undefined) return answer === "yes" || answer === "always";
    }
  }
}

/** `n` means `no`. */
const ANSWERS = ["yes", "always", "no", "never"] as const;

/**
 * The tools of all tool servers of the server's configuration, or of some.
 * @param wanted names, separated by commas; true: all
 */
export async function offerTools(context: CliContext, wanted: string | true): Promise<RunTools> {
  const { client, terminal } = context;
  const servers = (await client.get("/api/mcp"))["servers"] as Json[];
  const known = servers.map(({ name }) => String(name));
  if (known.length === 0) throw new Error("the server has no tool servers: add one to 'mcp.servers' of hearth.json5");
  const names = wanted === true ? known : wanted.split(",").map((name) => name.trim());
  const unknown = names.find((name) => !known.includes(name));
  if (unknown !== undefined) throw new Error(`--tools: expected some of ${known.join(", ")}, got '${unknown}'`);
  const offered = new Map<string, Offered>();
  for (const { name: server, tools, problem } of servers.filter(({ name }) => names.includes(String(name)))) {
    if (problem) terminal.note(`no tools of '${server}': ${oneLine(String(problem))}`);
    for (const { tool, harmless, definition } of tools as Json[]) {
      offered.set(definition.function.name, { server, tool, harmless, definition });
    }
  }
  return new RunTools(context, offered);
}
