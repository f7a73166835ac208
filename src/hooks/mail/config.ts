/**
 * `hooks.mail`: the mailbox that the gateway listens to, and what a mail's run gets. Without an account only the
 * latter counts, for mails that others post to the mail mapping.
 */
import { isIPv6 } from "node:net";
import { resolve } from "node:path";
import { z } from "zod";

/** What the mail preset quotes of a body unless a mapping says otherwise. */
const BODY_BYTES_DEFAULT = 20_000;
const BODY_BYTES_MAX = 200_000;
const PORT_TLS = 993;
const PORT_PLAIN = 143;

const word = z.string().trim().min(1).max(512);

const isHost = (text: string): boolean => /^[\w.-]+$/.test(text) || isIPv6(text);

const fields = z.strictObject({
  /** Whether the gateway listens; it needs an account too. */
  enabled: z.boolean().default(true),
  host: word.refine(isHost, "expected the name or the address of a server, without port").optional(),
  /** Absent: 993, or 143 where `secure` is false. */
  port: z.int().min(1).max(65_535).optional(),
  /** TLS from the first byte. False: STARTTLS, which must succeed, but on loopback. */
  secure: z.boolean().default(true),
  /** Whether the password may go over a network without TLS. */
  allowPlaintext: z.boolean().default(false),
  /** PEM file of the authority that vouches for the server, where the system does not know it. */
  caFile: word.optional(),
  user: word.optional(),
  password: z.string().min(1).max(4096).optional(),
  /** File that holds the password alone; relative to the folder of the configuration. */
  passwordFile: word.optional(),
  mailbox: word.default("INBOX"),
  /** How often to look, beside being told. */
  pollSeconds: z.int().min(5).max(3600).default(60),
  includeBody: z.boolean().default(true),
  /** Of a mail's text, at most. */
  maxBytes: z.int().positive().max(BODY_BYTES_MAX).default(BODY_BYTES_DEFAULT),
  /** Count less than what the mapping says. */
  model: z.string().optional(),
  thinking: z.string().optional(),
  allowUnsafeExternalContent: z.boolean().default(false),
});

export const mailSchema = fields.superRefine((mail, context) => {
  const say = (key: keyof typeof mail, message: string): void =>
    context.addIssue({ code: "custom", path: [key], message });
  if (mail.password !== undefined && mail.passwordFile !== undefined) {
    say("passwordFile", "either this or password, not both");
  }
  const hasPassword = mail.password !== undefined || mail.passwordFile !== undefined;
  if (mail.host === undefined && mail.user === undefined && !hasPassword) return; // no account
  if (mail.host === undefined) say("host", "required with an account");
  if (mail.user === undefined) say("user", "required with an account");
  if (!hasPassword) say("passwordFile", "required with an account, or password");
});
export type MailConfig = z.output<typeof mailSchema>;

/** A mailbox and how to get to it. */
export interface MailAccount {
  readonly host: string;
  readonly port: number;
  readonly user: string;
  readonly mailbox: string;
  readonly security: "tls" | "starttls" | "none";
  /** Absolute. */
  readonly caFile: string | undefined;
  /** Where the password is; `file` is absolute. */
  readonly password: { readonly value: string } | { readonly file: string };
}

/** Undefined: there is no account, or it is switched off. @param folder of the configuration file */
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

export const isLoopback = (host: string): boolean => /^(127\.[\d.]+|::1|localhost)$/i.test(host);
