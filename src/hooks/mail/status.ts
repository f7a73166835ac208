/** What a mail listener is at: for operators, probes and monitoring. Names and counts, never a mail's text. */

export interface MailStatus {
  /** `user at host`, and its mailbox. */
  readonly account: string;
  readonly mailbox: string;
  /** `waiting`: connected, and a mail cannot be handed over now; `refused`: the server does not take the password. */
  readonly state: "connecting" | "connected" | "waiting" | "down" | "refused";
  /** Since when it is in this state, epoch milliseconds. */
  readonly since: number;
  /** What it waits for. */
  readonly waitsFor?: string;
  /** When the last mail was handled. */
  readonly lastMailAt?: number;
  readonly lastError?: { readonly at: number; readonly message: string };
  /** When the next attempt to connect begins. */
  readonly nextAttemptAt?: number;
  /** Since the server started. */
  readonly mails: Readonly<Record<MailOutcome, number>>;
}

/** What anyone may know: no names, and nothing that others said. */
export type MailBrief = Pick<MailStatus, "state" | "since" | "mails"> & { readonly lastMailAt?: number };

export function briefOf({ state, since, lastMailAt, mails }: MailStatus): MailBrief {
  return { state, since, ...(lastMailAt === undefined ? {} : { lastMailAt }), mails };
}

/** `repeated`: handled before, under another number. */
export type MailOutcome = "accepted" | "repeated" | "nothing" | "refused";

export const noMails = (): Record<MailOutcome, number> => ({ accepted: 0, repeated: 0, nothing: 0, refused: 0 });
