/** Audits `hooks.mail`: the place of the password, its way to the server, and the mapping for mails. */
import { stat } from "node:fs/promises";
import { isLoopback, messageOf } from "../../base/index.ts";
import { mailAccount, type MailAccount } from "../hooks/mail/config.ts";
import { readPassword } from "../hooks/mail/password.ts";
import { makeMappings } from "../hooks/mapping/index.ts";
import type { Document } from "../../base/config/index.ts";
import type { Finding, Report } from "./report.ts";
import type { GatewaySnapshot } from "./snapshot.ts";

/** Permission bits of everyone but a file's owner. */
export const OTHERS = 0o077;

export function auditMail({ hooks, folder }: GatewaySnapshot, document: Document | undefined, report: Report): void {
  const { mail } = hooks;
  if (!mail?.host) return;
  const path = (key: string) => ["hooks", "mail", key];
  if (!mail.enabled) {
    report("info", "mail-off", { path: path("enabled"), message: "a mailbox is configured, but not watched" });
    return;
  }
  const account = mailAccount(mail, folder);
  if (mail.password !== undefined && document && !document.hasVariable(path("password"))) {
    const message = "written into the file: put it into a file of its own (passwordFile), or into the environment";
    report("warn", "mail-password-literal", { path: path("password"), message });
  }
  if (account?.security === "none" && !isLoopback(account.host)) {
    const message = "the password and all mails go over the network in clear";
    report("warn", "mail-plaintext", { path: path("allowPlaintext"), message });
  }
  if (makeMappings({ hooks, folder }).forPath("mail").length === 0) {
    const message = "no mapping takes mails, so they wait: add 'mail' to hooks.presets";
    report("error", "mail-unmapped", { path: ["hooks", "presets"], message });
  }
}

/** Audits the password's file: whether others can read it. */
export async function auditMailFiles({ hooks, folder }: GatewaySnapshot, document: Document): Promise<Finding[]> {
  const account = hooks.enabled ? mailAccount(hooks.mail, folder) : undefined;
  if (!account || !("file" in account.password)) return [];
  const key = "hooks.mail.passwordFile";
  const at = { key, where: document.where(["hooks", "mail", "passwordFile"]) };
  const problem = await problemOf(account);
  if (problem !== undefined) return [{ ...at, id: "mail-password-missing", severity: "error", message: problem }];
  const { mode } = await stat(account.password.file);
  if (process.platform === "win32" || (mode & OTHERS) === 0) return [];
  const message = `others on this machine may read '${account.password.file}': chmod 600`;
  return [{ ...at, id: "mail-password-readable", severity: "warn", message }];
}

const problemOf = (account: MailAccount): Promise<string | undefined> =>
  readPassword(account).then(() => undefined, messageOf);
