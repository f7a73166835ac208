/**
 * A mailbox on an IMAP server (RFC 9051): opened read-only, so that nothing in it changes, and read by the server's
 * numbers of mails (UIDs). It does not handle the mails.
 */
import { readFile } from "node:fs/promises";
import { isIP } from "node:net";
import type { FetchMessageObject, ImapFlow, ImapFlowError } from "imapflow";
import { oneLine } from "../../agent/boundary/index.ts";
import { AppError, messageOf } from "../../../base/index.ts";
import type { MailAccount } from "./config.ts";

/** Bytes read of a mail's source: enough for its head and text, whatever is attached after them. */
export const SOURCE_BYTES_MAX = 1024 * 1024;
/** Limit of a response: a mail's part and its envelope; lists of UIDs are shorter. */
const RESPONSE_BYTES_MAX = 8 * SOURCE_BYTES_MAX;
const CONNECT_MS = 30_000;
/** Longest silence of a connection; the mailbox is polled more often. */
const SILENCE_MS = 5 * 60_000;
/** Servers drop IDLE after 30 minutes, and some firewalls much sooner. */
const IDLE_MS = 9 * 60_000;
const GOODBYE_MS = 2000;
/** Maximum number of characters quoted of a server's error. */
const SAID_CHARS_MAX = 300;
/** Codes (RFC 5530) of refusals that do not concern the password. */
const TEMPORARY: readonly (string | undefined)[] = ["UNAVAILABLE", "LIMIT", "INUSE", "SERVERBUG", "CONTACTADMIN"];

/** Names of settings in the form that users enter. */
export interface MailNames {
  readonly caFile: string;
  readonly secure: string;
  readonly port: string;
}

const SETTINGS: MailNames = { caFile: "hooks.mail.caFile", secure: "hooks.mail.secure", port: "hooks.mail.port" };

export interface Mail {
  /** When the server received it, epoch milliseconds. */
  readonly receivedAt: number;
  /** The first `SOURCE_BYTES_MAX` bytes. */
  readonly source: Uint8Array;
}

export interface OpenMailbox {
  readonly uidValidity: string;
  /** UID of the next mail; undefined: the server does not report it, which RFC 3501 allows. */
  readonly uidNext: number | undefined;
  /**
   * UIDs above one, ascending.
   * @param options.since only mails received on this day or later
   */
  uidsAfter(uid: number, options?: { since?: Date }): Promise<readonly number[]>;
  /** Undefined: it was deleted. Throws if the server cannot read it. */
  fetch(uid: number): Promise<Mail | undefined>;
  /** Resolves when there may be new mails since the last look, or after a while. */
  news(afterMs: number): Promise<void>;
  /** Ends a wait for news. */
  wake(): void;
  close(): Promise<void>;
}

/**
 * Logs in and opens the mailbox; the signal breaks the connection. All methods throw `unauthorized` if the server
 * refuses the password, `not_found` if there is no such mailbox, else `upstream`, naming server and user.
 */
export async function openMailbox(
  account: MailAccount,
  { password, signal, names = SETTINGS }: { password: string; signal: AbortSignal; names?: MailNames },
): Promise<OpenMailbox> {
  const client = await makeClient(account, { password, names });
  const abort = (): void => client.close();
  signal.addEventListener("abort", abort, { once: true });
  const named = <T>(work: Promise<T>): Promise<T> =>
    work.catch((error: unknown) => {
      throw translated(error, account, names);
    });
  try {
    if (signal.aborted) throw new AppError("cancelled", "the mail listener was stopped");
    await named(client.connect());
    const { uidValidity, uidNext } = await named(selectMailbox(client, account));
    const news = watchNews(client);
    return {
      uidValidity: String(uidValidity),
      uidNext,
      uidsAfter: (uid, { since } = {}) => named(search(client, uid, since)),
      fetch: (uid) => named(fetchMail(client, uid)),
      news: (afterMs) => named(news.wait(afterMs)),
      wake: news.wake,
      async close() {
        signal.removeEventListener("abort", abort);
        const timer = setTimeout(() => client.close(), GOODBYE_MS); // closed either way
        await client.logout().catch(() => {});
        clearTimeout(timer);
        client.close();
      },
    };
  } catch (error) {
    signal.removeEventListener("abort", abort);
    client.close();
    throw error;
  }
}

async function makeClient(
  account: MailAccount,
  { password, names }: { password: string; names: MailNames },
): Promise<ImapFlow> {
  const { host, port, user, security, caFile } = account;
  const ca = caFile === undefined ? undefined : await readFile(caFile, "utf8").catch(unreadable(caFile, names));
  const library = await import("imapflow"); // loaded only by gateways with a mailbox
  const client = new library.ImapFlow({
    host,
    port,
    auth: { user, pass: password },
    secure: security === "tls",
    ...(security === "tls" ? {} : { doSTARTTLS: security === "starttls" }),
    // without a name, the certificate must be for the address
    tls: { minVersion: "TLSv1.2", ...(isIP(host) > 0 ? { servername: "" } : {}), ...(ca === undefined ? {} : { ca }) },
    logger: false, // it would log the content of mails
    clientInfo: { name: "Hearth", version: false, vendor: false, "support-url": false },
    disableCompression: true, // a small response could expand to a large one
    connectionTimeout: CONNECT_MS,
    greetingTimeout: CONNECT_MS,
    socketTimeout: SILENCE_MS,
    maxIdleTime: IDLE_MS,
    maxLiteralSize: 2 * SOURCE_BYTES_MAX,
    maxLineLength: RESPONSE_BYTES_MAX,
    maxResponseSize: RESPONSE_BYTES_MAX,
  });
  client.on("error", () => {}); // the pending command rejects with the error
  return client;
}

const unreadable =
  (path: string, { caFile }: MailNames) =>
  (error: NodeJS.ErrnoException) => {
    throw new AppError("bad_request", `${caFile}: cannot read '${path}': ${error.code}`);
  };

async function selectMailbox(client: ImapFlow, { mailbox }: MailAccount) {
  try {
    return await client.mailboxOpen(mailbox, { readOnly: true });
  } catch (error) {
    const { responseStatus } = error as ImapFlowError; // the library throws no other type
    if (responseStatus !== "NO") throw error;
    throw new AppError("not_found", `there is no mailbox '${mailbox}', or it cannot be opened`, { cause: error });
  }
}

async function search(client: ImapFlow, uid: number, since: Date | undefined): Promise<readonly number[]> {
  const found = await client.search({ uid: `${uid + 1}:*`, ...(since ? { since } : {}) }, { uid: true });
  if (!found) throw new AppError("upstream", "the mail server did not answer a search for new mails");
  // `7:*` matches the last mail, even if its number is 6
  return found.filter((each) => each > uid).toSorted((a, b) => a - b);
}

async function fetchMail(client: ImapFlow, uid: number): Promise<Mail | undefined> {
  const query = { uid: true, internalDate: true, source: { start: 0, maxLength: SOURCE_BYTES_MAX } };
  const found: FetchMessageObject | false | undefined = await client.fetchOne(String(uid), query, { uid: true });
  if (!found && client.usable && client.mailbox) return undefined;
  if (!found || !found.source) throw new AppError("upstream", "the mail server lists a mail but does not return it");
  const receivedAt = Number(new Date(found.internalDate ?? Number.NaN));
  return { receivedAt: Number.isNaN(receivedAt) ? 0 : receivedAt, source: found.source };
}

/** Keeps news between two waits for the next one. */
function watchNews(client: ImapFlow): { wait(afterMs: number): Promise<void>; wake(): void } {
  let isNew = false;
  let wake = (): void => {};
  client.on("exists", () => {
    isNew = true;
    wake();
  });
  client.on("close", () => wake());
  const wait = async (afterMs: number): Promise<void> => {
    const { promise, resolve } = Promise.withResolvers<void>();
    wake = resolve;
    const timer = setTimeout(resolve, afterMs);
    try {
      if (!isNew && client.usable) {
        void client.idle().catch(() => {}); // ends with the next command, or with the connection
        await promise;
      }
    } finally {
      clearTimeout(timer);
    }
    isNew = false;
    if (!client.usable) throw new AppError("upstream", "the connection was closed");
  };
  return { wait, wake: () => wake() };
}

/** Hints for errors that users meet while setting up a mailbox. */
const HINTS: Readonly<Record<string, (names: MailNames) => string>> = {
  DEPTH_ZERO_SELF_SIGNED_CERT: ({ caFile }) => `name the file of its certificate: ${caFile}`,
  SELF_SIGNED_CERT_IN_CHAIN: ({ caFile }) => `name the file of its authority's certificate: ${caFile}`,
  UNABLE_TO_VERIFY_LEAF_SIGNATURE: ({ caFile }) => `name the file of its authority's certificate: ${caFile}`,
  ERR_SSL_WRONG_VERSION_NUMBER: ({ secure, port }) => `there is no TLS at this port: see ${secure} and ${port}`,
  MissingServerExtension: ({ secure }) => `the server does not offer STARTTLS: see ${secure}`,
};

function translated(error: unknown, { host, port, user }: MailAccount, names: MailNames): AppError {
  const { code = "", authenticationFailed, serverResponseCode, ...rest } = error as ImapFlowError; // or another error
  const at = `${host}:${port}`;
  if (error instanceof AppError) return new AppError(error.code, `${at}: ${error.message}`, { cause: error });
  const said = oneLine(rest.responseText ?? "", SAID_CHARS_MAX);
  if (authenticationFailed && !TEMPORARY.includes(serverResponseCode)) {
    const message = `${at} refuses the password of '${user}'${said === "" ? "" : `: ${said}`}`;
    return new AppError("unauthorized", message, { cause: error });
  }
  const parts = [code, said === "" ? oneLine(messageOf(error), SAID_CHARS_MAX) : said, HINTS[code]?.(names) ?? ""];
  return new AppError("upstream", `${at}: ${parts.filter((part) => part !== "").join(": ")}`, { cause: error });
}
