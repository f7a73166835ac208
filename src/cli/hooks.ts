/** `hearth hooks`: its commands, with their flags. */
import type { Command } from "commander";
import { type ConfigSources, type Document, readConfigPart } from "../base/config/index.ts";
import { clientSettings } from "./client/address.ts";
import { Client } from "./client/client.ts";
import { cancelHook, listHooks, pauseHooks, showHook, testMapping, type ListOptions } from "./commands/hooks.ts";
import { wholeNumber } from "./developers.ts";
import { nodes } from "./commands/nodes.ts";
import type { ReplayOptions } from "./commands/hooks-replay.ts";
import type { LocalContext, SignOptions } from "./commands/hooks-local.ts";
import { interruptible, type CliContext } from "./terminal/context.ts";
import { failing, type CliParts } from "./terminal/failing.ts";

const JSON_FLAG = ["--json", "print it as JSON"] as const;
const collect = (value: string, before: readonly string[]): string[] => [...before, value];

const STATES = `
States of a run:
  queued     waits for its turn, for another attempt after a failure, or for a pause after a crash
  running    the model works on it
  succeeded  the answer is stored; the state of the reply stands beside it
  failed     cannot succeed; its reason says why
  dead       given up after hooks.queue.maxAttempts attempts, after a day of failures, or after that many
             crashes of the server while only it ran. Nothing is deleted: 'replay' runs it again
  cancelled  ended by a person
`;

function addPause(hooks: Command, remote: Remote): void {
  for (const [name, about] of [
    ["pause", "start no runs, on any server of the database, until 'resume'; webhooks are accepted and wait"],
    ["resume", "start runs again"],
  ] as const) {
    hooks
      .command(name)
      .description(about)
      .option(...JSON_FLAG)
      .action(remote((context, options: { json?: boolean }) => pauseHooks(context, name === "pause", options)));
  }
}

function addReplay(hooks: Command, remote: Remote): void {
  hooks
    .command("replay")
    .description("run a delivery again, or all runs that were given up, or send all failed replies again")
    .argument("[id]", "id of a delivery or a run")
    .option("--dead", "all runs that were given up and not replayed since, oldest first")
    .option("--replies", "all replies that failed: the stored answers, without asking the model again")
    .option("--path <path>", "with --dead or --replies: only runs received at this path")
    .option("--mapping <id>", "with --dead or --replies: only runs of this mapping")
    .option("--since <time>", "with --dead or --replies: only runs that ended since, as 2h or 2026-01-31T08:00Z")
    .option("--dry-run", "with --dead or --replies: only count them")
    .option(...JSON_FLAG)
    .action(
      remote(async (context, id: string | undefined, options: ReplayOptions) =>
        (await import("./commands/hooks-replay.ts")).replayHooks(context, id, options),
      ),
    );
}

export function addHooksCommands(program: Command, parts: CliParts): void {
  const hooks = program
    .command("hooks")
    .description("manage webhooks")
    .enablePositionalOptions(false) // --config may follow the command
    .option("--config <file>", "configuration file (JSON5)")
    .addHelpText("after", STATES);
  const sources = (): ConfigSources => ({ ...parts, flags: { ...parts.flags, ...hooks.opts() } });
  const remote: Remote = (work) =>
    failing(parts, (terminal, ...args) => work(adminContext(sources(), terminal), ...args));
  const local: Local = (load) =>
    failing(parts, async (terminal, ...args) => (await load())({ terminal, sources: sources() }, ...args));

  hooks
    .command("list")
    .alias("ls")
    .description("list deliveries, newest first")
    .option(
      "--state <state>",
      "only with a run in this state: queued, running, succeeded, failed (also if its reply failed or is unknown), dead or cancelled",
    )
    .option("--path <path>", "only deliveries received at this path")
    .option("--mapping <id>", "only deliveries that this mapping took")
    .option("--limit <n>", "maximum number of deliveries", "20")
    .option("--before <id>", "show deliveries older than this one")
    .option(...JSON_FLAG)
    .action(remote((context, options: ListOptions) => listHooks(context, options)));
  const onOne = (name: string, about: string, work: typeof showHook): void =>
    void hooks
      .command(name)
      .description(about)
      .argument("<id>", "id of a delivery or a run")
      .option(...JSON_FLAG)
      .action(remote((context, id: string, options: { json?: boolean }) => work(context, id, options)));
  onOne("show", "show the details of a delivery", showHook);
  addReplay(hooks, remote);
  onOne("cancel", "end the runs of a delivery, and drop replies that have not left", cancelHook);
  addPause(hooks, remote);
  addTrials(hooks, { remote, local });
  hooks
    .command("audit")
    .description("check the configuration; exits with 1 if something cannot work")
    .option(...JSON_FLAG)
    .action(local(async () => (await import("./commands/hooks-local.ts")).auditHooks));
  addMailCommands(hooks, { remote, local, wholeNumber });
  addNodes(program, { remote });
  addApprovals(program, { remote });
}

function addTrials(hooks: Command, { remote, local }: Pick<MailParts, "remote" | "local">): void {
  hooks
    .command("test")
    .description("show what a mapping would do with a request, without doing it")
    .argument("<mapping>")
    .argument("<file>", "the body, JSON unless a header says Content-Type; - for standard input")
    .option("-H, --header <header>", "name: value; may be repeated", collect, [])
    .option("-q, --query <parameter>", "name=value; may be repeated", collect, [])
    .option(...JSON_FLAG)
    .action(
      remote((context, mapping: string, file: string, options: { header: string[]; query: string[]; json?: boolean }) =>
        testMapping(context, { mapping, file }, options),
      ),
    );
  hooks
    .command("sign")
    .description("print the headers that sign a body, for curl --header @-")
    .argument("<scheme>", "a signature scheme, or a mapping of the configuration")
    .argument("<file>", "the body; - for standard input")
    .option("--secret <secret>", "the secret to sign with; default: HEARTH_HOOK_SECRET, else the mapping's")
    .option("--id <id>", "the sender's id of the delivery")
    .option("--url <url>", "request URL, for schemes that sign it")
    .option("--method <method>", "request method, for schemes that sign it", "POST")
    .action(
      local(async () => {
        const { signFile } = await import("./commands/hooks-local.ts");
        return (context, scheme: string, file: string, options: Omit<SignOptions, "now">) =>
          signFile(context, { scheme, file }, { ...options, now: Date.now() });
      }),
    );
}

function addNodes(program: Command, { remote }: Pick<MailParts, "remote">): void {
  program
    .command("nodes")
    .description("list the servers that share the database")
    .option(...JSON_FLAG)
    .action(remote((context, options: { json?: boolean }) => nodes(context, options)));
}

function addApprovals(program: Command, { remote }: Pick<MailParts, "remote">): void {
  const approvals = program
    .command("approvals")
    .description("list the calls of tools that wait for an approval, allow or refuse them")
    .option(...JSON_FLAG)
    .action(
      remote(async (context, options: { json?: boolean }) =>
        (await import("./commands/approvals.ts")).listApprovals(context, options),
      ),
    );
  for (const [verdict, about] of [
    ["yes", "allow a call once"],
    ["no", "refuse a call"],
  ] as const) {
    approvals
      .command(verdict)
      .description(about)
      .argument("<code>")
      .option("--digest <sha256>", "only if this is the digest of its tool and arguments, as --json prints it")
      .option(...JSON_FLAG)
      .action(
        remote(async (context, code: string, options: { json?: boolean; digest?: string }) =>
          (await import("./commands/approvals.ts")).decideApproval(context, { code, verdict }, options),
        ),
      );
  }
}

type Work<Context, Args extends unknown[]> = (context: Context, ...args: Args) => Promise<void>;
type Remote = <Args extends unknown[]>(work: Work<CliContext, Args>) => (...args: Args) => Promise<void>;

/** Its code, which knows the gateway's configuration, is imported on demand. */
type Local = <Args extends unknown[]>(
  load: () => Promise<Work<LocalContext, Args>>,
) => (...args: Args) => Promise<void>;

interface MailParts {
  readonly remote: Remote;
  readonly local: Local;
  readonly wholeNumber: (text: string) => number;
}

function addMailCommands(hooks: Command, { remote, local, wholeNumber }: MailParts): void {
  const mail = hooks.command("mail").description("turn the mails of a mailbox into runs");
  mail
    .command("setup")
    .description("test a mailbox and add it to the configuration; asks for missing settings")
    .option("--user <address>", "user name for the login")
    .option("--host <name>", "IMAP server; known for Gmail, Outlook, iCloud, Yahoo and Fastmail")
    .option("--port <n>", "default 993, or 143 with --starttls", wholeNumber)
    .option("--starttls", "begin without TLS, then switch to it")
    .option("--mailbox <name>", "default INBOX")
    .option("--ca-file <file>", "CA certificate (PEM) that signed the server's certificate")
    .option("--password-file <file>", "file that holds the password; - for standard input")
    .action(local(async () => (await import("./commands/hooks-mail.ts")).setupMail));
  mail
    .command("status")
    .description("show the state of the server's mail listener")
    .option(...JSON_FLAG)
    .action(
      remote(async (context, options: { json?: boolean }) =>
        (await import("./commands/hooks-mail.ts")).mailStatus(context, options),
      ),
    );
}

/** The server with the admin token: `HEARTH_GATEWAY_TOKEN`, else the configuration's. */
function adminContext(sources: ConfigSources, terminal: CliContext["terminal"]): CliContext {
  const { server, home } = clientSettings(sources);
  const fromEnv = sources.env["HEARTH_GATEWAY_TOKEN"]?.trim() || undefined;
  const apiKey = fromEnv ?? tokenIn(readConfigPart(sources));
  return {
    client: new Client({ ...server, apiKey, keyVariable: "HEARTH_GATEWAY_TOKEN" }),
    terminal,
    home,
    editor: undefined,
    nowMs: Date.now,
    interruptible,
  };
}

function tokenIn(document: Document | undefined): string | undefined {
  document?.checkSet(["gateway", "token"]);
  const section = document?.root["gateway"];
  if (typeof section !== "object" || section === null || !Object.hasOwn(section, "token")) return undefined;
  const { token } = section as { token: unknown };
  return typeof token === "string" ? token.trim() : undefined;
}
