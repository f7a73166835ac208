/** The state of a mail listener, for operators, probes and monitoring: names and counts, never a mail's text. */
import { Type, type TInteger } from "@sinclair/typebox";
import { oneOfTexts, type Output, strictObject } from "../../../base/schema.ts";

/** `repeated`: handled before, under another UID. */
const OUTCOMES = ["accepted", "repeated", "nothing", "refused"] as const;
export type MailOutcome = (typeof OUTCOMES)[number];

const TIME = "Epoch milliseconds";
const at = (description = TIME) => Type.Integer({ description });
const STATES = ["connecting", "connected", "waiting", "down", "refused"] as const;

export const mailStatusSchema = strictObject({
  account: Type.String({ description: "`user at host`" }),
  mailbox: Type.String(),
  state: oneOfTexts(STATES, {
    description: "`waiting`: a mail cannot be handed over now; `refused`: the server does not take the password",
  }),
  since: at(),
  waitsFor: Type.Optional(Type.String()),
  lastMailAt: Type.Optional(at("When the last mail was handled")),
  lastError: Type.Optional(strictObject({ at: at(), message: Type.String() })),
  nextAttemptAt: Type.Optional(at("When the next attempt to connect begins")),
  mails: strictObject(
    Object.fromEntries(OUTCOMES.map((outcome) => [outcome, Type.Integer()])) as Record<MailOutcome, TInteger>,
    { description: "Since the server started" },
  ),
});
export type MailStatus = Readonly<Output<typeof mailStatusSchema>>;

/** The public part: no names, and no text from outside. */
export type MailBrief = Pick<MailStatus, "state" | "since" | "mails"> & { readonly lastMailAt?: number };

export function briefOf({ state, since, lastMailAt, mails }: MailStatus): MailBrief {
  return { state, since, ...(lastMailAt === undefined ? {} : { lastMailAt }), mails };
}

export const noMails = (): Record<MailOutcome, number> => ({ accepted: 0, repeated: 0, nothing: 0, refused: 0 });
