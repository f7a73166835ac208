/** Adds a mailbox to the configuration, with the settings that watching needs: preset, tokens, the password's file. */
import { existsSync } from "node:fs";
import { dirname, join } from "node:path";
import { type ConfigSources, type Document, type Edit, readConfigFile } from "../../base/config/index.ts";
import { AppError, isObject } from "../../base/index.ts";
import { mailAccount, mailSchema, type MailAccount } from "../hooks/mail/config.ts";
import { changeConfig, configFile, makeToken, writePrivateFile, type ChangedConfig } from "./change-config.ts";

/** Beside the configuration file. */
const PASSWORD_FILE = "mail-password";
/** Settings that belong to a server, and are replaced with it. */
const OF_SERVER: readonly string[] = ["port", "secure", "allowPlaintext", "caFile", "mailbox"];

/** Absent: the configured value for this server, else the default. */
export interface MailSettings {
  readonly user: string;
  readonly host: string;
  readonly port?: number;
  readonly secure?: boolean;
  readonly mailbox?: string;
  readonly caFile?: string;
  /** `file` is absolute; a value is written to a file beside the configuration. */
  readonly password: { readonly value: string } | { readonly file: string };
}

export interface MailPlan {
  /** Tested before anything is written. */
  readonly account: MailAccount;
  /** Throws `bad_request` if the new configuration would be invalid, and changes nothing then. */
  write(): Promise<WrittenMail>;
}

export interface WrittenMail extends ChangedConfig {
  readonly passwordFile: string;
  /** Keys of new tokens. */
  readonly made: readonly string[];
}

/** Throws `bad_request` if a setting is invalid, or the configuration file cannot be read. */
export async function planMail(sources: ConfigSources, settings: MailSettings): Promise<MailPlan> {
  const file = await configFile(sources);
  const document = existsSync(file) ? readConfigFile(sources) : undefined;
  const { password, ...given } = settings;
  const own = join(dirname(file), PASSWORD_FILE);
  const passwordFile = "file" in password ? password.file : PASSWORD_FILE;
  const before = sectionOf(document, "hooks", "mail");
  const after = { ...kept(before, settings.host), ...given, passwordFile };
  const account = accountOf(after, dirname(file));
  const tokens = [
    ["hooks", "token"],
    ["gateway", "token"],
  ].filter(([section = "", key = ""]) => !sectionOf(document, section)[key]);
  const edits: readonly Edit[] = [
    { kind: "set", path: ["hooks", "enabled"], value: true },
    ...tokens.map((path): Edit => ({ kind: "set", path, value: makeToken() })),
    ...presetEdits(document),
    ...mailEdits(before, after),
  ];
  return {
    account,
    async write() {
      const first = async (): Promise<void> => {
        if ("value" in password) await writePrivateFile(own, `${password.value}\n`);
      };
      const changed = await changeConfig(sources, edits, { first });
      const made = tokens.map((path) => path.join("."));
      return { ...changed, passwordFile: "file" in password ? password.file : own, made };
    },
  };
}

type Section = Readonly<Record<string, unknown>>;

/** Empty if it is missing; the check of the whole file reports a section that is not an object. */
function sectionOf(document: Document | undefined, ...path: readonly string[]): Section {
  let value: unknown = document?.root;
  for (const key of path) value = isObject(value) ? value[key] : undefined;
  return isObject(value) ? value : {};
}

/** The previous settings to keep; another server's settings are dropped. */
function kept(before: Section, host: string): Section {
  const isSame = before["host"] === host;
  const gone = [
    "password",
    "passwordFile",
    ...(isSame ? [] : OF_SERVER),
    ...(before["enabled"] === false ? ["enabled"] : []),
  ];
  return Object.fromEntries(Object.entries(before).filter(([key]) => !gone.includes(key)));
}

function accountOf(mail: Section, folder: string): MailAccount {
  const parsed = mailSchema.safeParse(mail);
  if (!parsed.success) {
    const problems = parsed.problems.map(({ path, message }) => `hooks.mail.${path.join(".")}: ${message}`);
    throw new AppError("bad_request", problems.join("\n"));
  }
  const account = mailAccount(parsed.data, folder);
  if (!account) throw new AppError("bad_request", "hooks.mail: expected a host and a user");
  return account;
}

function mailEdits(before: Section, after: Section): Edit[] {
  const path = (key: string): string[] => ["hooks", "mail", key];
  if (Object.keys(before).length === 0) return [{ kind: "set", path: ["hooks", "mail"], value: after }];
  const gone = Object.keys(before).filter((key) => !Object.hasOwn(after, key));
  const changed = Object.entries(after).filter(([key, value]) => !Bun.deepEquals(before[key], value));
  return [
    ...gone.map((key): Edit => ({ kind: "remove", path: path(key) })),
    ...changed.map(([key, value]): Edit => ({ kind: "set", path: path(key), value })),
  ];
}

/** Adds the preset, unless mails have a mapping already. */
function presetEdits(document: Document | undefined): Edit[] {
  const { presets, mappings } = sectionOf(document, "hooks");
  const hasPreset = Array.isArray(presets) && presets.includes("mail");
  const hasMapping =
    Array.isArray(mappings) &&
    mappings.some((each: unknown) => isObject(each) && isObject(each["match"]) && each["match"]["path"] === "mail");
  return hasPreset || hasMapping ? [] : [{ kind: "append", path: ["hooks", "presets"], value: "mail" }];
}
