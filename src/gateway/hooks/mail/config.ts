/**
 * `hooks.mail`: the mailbox that the gateway watches, and the settings of a mail's run. Without an account only the
 * latter apply, to mails that others post to the mail mapping.
 */
import { isLoopback } from "../../../base/index.ts";
import { isIPv6 } from "node:net";
import { resolve } from "node:path";
import { Type } from "@sinclair/typebox";
import { type Parsed, reader, refined, type SchemaProblem, strictObject, trimmed } from "../../../base/schema.ts";

/** Default length of a quoted body in the mail preset. */
const BODY_BYTES_DEFAULT = 20_000;
const BODY_BYTES_MAX = 200_000;
const PORT_TLS = 993;
const PORT_PLAIN = 143;

const word = (options: object = {}) => trimmed({ maxLength: 512, ...options });

const isHost = (text: string): boolean => /^[\w.-]+$/.test(text) || isIPv6(text);

const fields = strictObject({
  /** False: do not watch, even with an account. */
  enabled: Type.Boolean({ default: true }),
  host: Type.Optional(
    refined(word(), (text) =>
      isHost(text) ? undefined : "expected the name or the address of a server, without port",
    ),
  ),
  /** Default: 993, or 143 if `secure` is false. */
  port: Type.Optional(Type.Integer({ minimum: 1, maximum: 65_535 })),
  /** TLS from the first byte. False: STARTTLS, which must succeed, except on loopback. */
  secure: Type.Boolean({ default: true }),
  /** True if the password may cross a network without TLS. */
  allowPlaintext: Type.Boolean({ default: false }),
  /** PEM file of the server's certificate authority, if the system does not know it. */
  caFile: Type.Optional(word()),
  user: Type.Optional(word()),
  password: Type.Optional(Type.String({ minLength: 1, maxLength: 4096 })),
  /** File that holds only the password; relative to the folder of the configuration. */
  passwordFile: Type.Optional(word()),
  mailbox: word({ default: "INBOX" }),
  /** Polling interval, in addition to notifications. */
  pollSeconds: Type.Integer({ minimum: 5, maximum: 3600, default: 60 }),
  includeBody: Type.Boolean({ default: true }),
  /** Maximum number of bytes of a mail's text. */
  maxBytes: Type.Integer({ minimum: 1, maximum: BODY_BYTES_MAX, default: BODY_BYTES_DEFAULT }),
  /** The mapping's own settings take precedence. */
  model: Type.Optional(Type.String()),
  thinking: Type.Optional(Type.String()),
  allowUnsafeExternalContent: Type.Boolean({ default: false }),
});

export const mailSection = refined(fields, (mail) => {
  const problems: SchemaProblem[] = [];
  const say = (key: keyof typeof mail, message: string): void => void problems.push({ path: [key], message });
  if (mail.password !== undefined && mail.passwordFile !== undefined) {
    say("passwordFile", "either this or password, not both");
  }
  const hasPassword = mail.password !== undefined || mail.passwordFile !== undefined;
  if (mail.host === undefined && mail.user === undefined && !hasPassword) return problems; // no account
  if (mail.host === undefined) say("host", "required with an account");
  if (mail.user === undefined) say("user", "required with an account");
  if (!hasPassword) say("passwordFile", "required with an account, or password");
  return problems;
});
export const mailSchema = reader(mailSection);
export type MailConfig = Parsed<typeof mailSchema>;

/** A mailbox and its server. */
export interface MailAccount {
  readonly host: string;
  readonly port: number;
  readonly user: string;
  readonly mailbox: string;
  readonly security: "tls" | "starttls" | "none";
  /** Absolute. */
  readonly caFile: string | undefined;
  /** The password, or its file as an absolute path. */
  readonly password: { readonly value: string } | { readonly file: string };
}

/**
 * Undefined: there is no account, or it is disabled.
 * @param folder of the configuration file
 */
export function mailAccount(mail: MailConfig | undefined, folder: string): MailAccount | undefined {
  if (!mail?.enabled || mail.host === undefined || mail.user === undefined) return undefined;
  const { host, user, mailbox, secure, allowPlaintext, caFile, password, passwordFile = "" } = mail;
  const isPlain = allowPlaintext || isLoopback(host);
  return {
    host,
    port: mail.port ?? (secure ? PORT_TLS : PORT_PLAIN),
    user,
    mailbox,
    security: secure ? "tls" : isPlain ? "none" : "starttls",
    caFile: caFile === undefined ? undefined : resolve(folder, caFile),
    password: password === undefined ? { file: resolve(folder, passwordFile) } : { value: password },
  };
}
