/** What a mail listener is at: for operators, probes and monitoring. Names and counts, never a mail's text. */
import { z } from "zod";

/** `repeated`: handled before, under another number. */
const OUTCOMES = ["accepted", "repeated", "nothing", "refused"] as const;
export type MailOutcome = (typeof OUTCOMES)[number];

const at = z.int().describe("Epoch milliseconds");

export const mailStatusSchema = z.object({
  account: z.string().describe("`user at host`"),
  mailbox: z.string(),
  state: z
    .enum(["connecting", "connected", "waiting", "down", "refused"])
    .describe("`waiting`: a mail cannot be handed over now; `refused`: the server does not take the password"),
  since: at,
  waitsFor: z.string().optional(),
  lastMailAt: at.optional().describe("When the last mail was handled"),
  lastError: z.object({ at, message: z.string() }).optional(),
  nextAttemptAt: at.optional().describe("When the next attempt to connect begins"),
  mails: z.record(z.enum(OUTCOMES), z.int()).describe("Since the server started"),
});
export type MailStatus = Readonly<z.output<typeof mailStatusSchema>>;

/** What anyone may know: no names, and nothing that others said. */
export type MailBrief = Pick<MailStatus, "state" | "since" | "mails"> & { readonly lastMailAt?: number };

export function briefOf({ state, since, lastMailAt, mails }: MailStatus): MailBrief {
  return { state, since, ...(lastMailAt === undefined ? {} : { lastMailAt }), mails };
}

export const noMails = (): Record<MailOutcome, number> => ({ accepted: 0, repeated: 0, nothing: 0, refused: 0 });
