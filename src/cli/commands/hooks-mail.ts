/** `hearth hooks mail setup` and `status`: the mailbox that the gateway watches. */
import { resolve } from "node:path";
import { oneLine } from "../../gateway/agent/boundary/index.ts";
import { AppError } from "../../base/index.ts";
import {
  findProvider,
  type MailProvider,
  type MailSettings,
  openMailbox,
  planMail,
  readPassword,
} from "../../gateway/setup.ts";
import { ask } from "../terminal/ask.ts";
import type { CliContext } from "../terminal/context.ts";
import { formatTable, formatWhen } from "../terminal/format.ts";
import { interruptible } from "../terminal/context.ts";
import type { LocalContext } from "./hooks-local.ts";

export interface SetupOptions {
  readonly user?: string;
  readonly host?: string;
  readonly port?: number;
  readonly starttls?: boolean;
  readonly mailbox?: string;
  readonly caFile?: string;
  /** `-`: standard input. */
  readonly passwordFile?: string;
}

const OPTIONS = { caFile: "--ca-file", secure: "--starttls", port: "--port" };

/** Asks for missing options and logs in before it writes anything. */
export async function setupMail({ terminal, sources }: LocalContext, options: SetupOptions): Promise<void> {
  const context = { terminal, sources };
  const user = options.user ?? (await asked(context, { flag: "--user", about: "Mail address" }));
  const provider = options.host === undefined ? findProvider(user) : undefined;
  const host = options.host ?? provider?.host ?? (await askHost(context, user));
  const settings: MailSettings = {
    user,
    host,
    password: await findPassword(context, options, provider),
    ...(options.port === undefined ? {} : { port: options.port }),
    ...(options.starttls ? { secure: false } : {}),
    ...(options.mailbox === undefined ? {} : { mailbox: options.mailbox }),
    ...(options.caFile === undefined ? {} : { caFile: resolve(options.caFile) }),
  };
  const plan = await planMail(sources, settings);
  const { account } = plan;
  terminal.note(`logging in to ${account.host}:${account.port} as ${account.user} …`);
  const password = await readPassword({ password: settings.password });
  await interruptible(async (signal) =>
    (await openMailbox(account, { password, signal, names: OPTIONS })).close(),
  ).catch((error: unknown) => {
    if (error instanceof AppError && error.code === "unauthorized" && provider) terminal.note(provider.note);
    throw error;
  });
  const written = await plan.write();
  terminal.write(
    [
      `Mailbox '${account.mailbox}' of ${account.user} works.`,
      `Configuration: ${written.path}${written.backup ? ` (as it was: ${written.backup})` : ""}`,
      `Password: ${written.passwordFile}`,
      ...(written.made.length > 0 ? [`New tokens: ${written.made.join(", ")}`] : []),
      "",
      "A running server with a gateway uses it at once; else start one: hearth serve",
      "New mails become runs. See how they go: hearth hooks mail status, hearth hooks list",
      "Set where answers go: hooks.presetSettings.mail.channel and .to. Check the rest: hearth hooks audit",
      "",
    ].join("\n"),
  );
}

/** Throws if standard input is not a terminal. */
async function asked(
  { terminal }: LocalContext,
  { flag, ...question }: { flag: string; about: string; initial?: string; isSecret?: boolean },
): Promise<string> {
  if (terminal.isInteractive) return ask(terminal, question);
  throw new AppError("bad_request", `${flag} is required where standard input is not a terminal`);
}

const askHost = (context: LocalContext, user: string): Promise<string> => {
  const domain = user.includes("@") ? user.slice(user.lastIndexOf("@") + 1) : undefined;
  const initial = domain ? { initial: `imap.${domain}` } : {};
  return asked(context, { flag: "--host", about: "IMAP server", ...initial });
};

async function findPassword(
  context: LocalContext,
  { passwordFile }: SetupOptions,
  provider: MailProvider | undefined,
): Promise<MailSettings["password"]> {
  if (passwordFile === "-") return { value: await firstLine() };
  if (passwordFile !== undefined) return { file: resolve(passwordFile) };
  if (provider) context.terminal.note(provider.note);
  const typed = await asked(context, { flag: "--password-file", about: "Password", isSecret: true });
  // Google displays it in groups of four
  return { value: provider?.name === "Gmail" ? typed.replaceAll(" ", "") : typed };
}

async function firstLine(): Promise<string> {
  const [line = ""] = (await Bun.stdin.text()).split(/\r?\n/);
  if (line === "") throw new AppError("bad_request", "--password-file: expected the password on standard input");
  return line;
}

/** Throws if the server watches no mailbox. */
export async function mailStatus({ client, terminal, nowMs }: CliContext, { json }: { json?: boolean }): Promise<void> {
  const found = await client.get("/hooks-admin/mail");
  if (json) return terminal.write(`${JSON.stringify(found, null, 2)}\n`);
  const when = (ms: unknown): string =>
    typeof ms === "number" ? formatWhen(new Date(ms).toISOString(), nowMs()) : "never";
  const { mails, lastError } = found;
  const facts: [string, string][] = [
    ["mailbox", `${found["mailbox"]} of ${found["account"]}`],
    ["state", `${found["state"]}, since ${when(found["since"])}`],
    ["waits for", String(found["waitsFor"] ?? "")],
    ["next attempt", found["nextAttemptAt"] === undefined ? "" : when(found["nextAttemptAt"])],
    ["last mail", when(found["lastMailAt"])],
    ["last error", lastError ? `${lastError.message} (${when(lastError.at)})` : ""],
    [
      "mails",
      Object.entries(mails as Record<string, number>)
        .map(([name, n]) => `${n} ${name}`)
        .join(", "),
    ],
  ];
  const rows = facts.filter(([, value]) => value !== "").map(([name, value]) => [name, oneLine(value, 400)]);
  terminal.write(formatTable([], rows));
}
