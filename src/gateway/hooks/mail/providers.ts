/** Common mail providers, by an address's domain: their servers, and hints. */

export interface MailProvider {
  readonly name: string;
  readonly host: string;
  /** A hint shown before the password prompt. */
  readonly note: string;
}

const GMAIL: MailProvider = {
  name: "Gmail",
  host: "imap.gmail.com",
  note: "Gmail takes an app password only: https://myaccount.google.com/apppasswords (2-step verification must be on)",
};
const OUTLOOK: MailProvider = {
  name: "Outlook",
  host: "outlook.office365.com",
  note: "Microsoft refuses passwords over IMAP for most accounts: forward the mail to another mailbox where it does",
};
const ICLOUD: MailProvider = {
  name: "iCloud",
  host: "imap.mail.me.com",
  note: "iCloud takes an app-specific password only: https://account.apple.com",
};
const YAHOO: MailProvider = {
  name: "Yahoo",
  host: "imap.mail.yahoo.com",
  note: "Yahoo takes an app password only: Account security, Generate app password",
};
const FASTMAIL: MailProvider = {
  name: "Fastmail",
  host: "imap.fastmail.com",
  note: "Fastmail takes an app password only: Settings, Privacy & Security, App passwords",
};

const BY_DOMAIN: readonly (readonly [RegExp, MailProvider])[] = [
  [/^(gmail|googlemail)\.com$/, GMAIL],
  [/^(outlook|hotmail|live|msn)\.[a-z.]+$/, OUTLOOK],
  [/^(icloud|me|mac)\.com$/, ICLOUD],
  [/^(yahoo\.[a-z.]+|ymail\.com)$/, YAHOO],
  [/^fastmail\.(com|fm)$/, FASTMAIL],
];

/**
 * Undefined for an unknown provider.
 * @param address `name@domain`
 */
export function findProvider(address: string): MailProvider | undefined {
  const domain = address.slice(address.lastIndexOf("@") + 1).toLowerCase();
  return BY_DOMAIN.find(([pattern]) => pattern.test(domain))?.[1];
}
