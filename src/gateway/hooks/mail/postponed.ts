/**
 * Mails on which a mapping's transform failed: each is tried again a little later, while those behind it go on. The
 * mailbox stays marked as read up to the first of them alone, so that a crash loses none.
 */
import type { MailItem } from "./message.ts";
import type { MailPosition } from "./position.ts";

/** Further ones hold up the mailbox: then it is the transform that fails, and not a mail. */
const POSTPONED_MAX = 3;

export interface PostponedMail {
  readonly uid: number;
  readonly item: MailItem;
  /** Tries so far. */
  readonly failures: number;
}

interface Waiting extends PostponedMail {
  /** By `performance.now()`: no matter of how clocks are set. */
  readonly dueAt: number;
}

export class Postponed {
  /** By the mail's id: numbers of a mailbox may change. */
  readonly #mails = new Map<string, Waiting>();

  get isFull(): boolean {
    return this.#mails.size >= POSTPONED_MAX;
  }

  put(mail: PostponedMail, afterMs: number): void {
    this.#mails.set(mail.item.id, { ...mail, dueAt: performance.now() + afterMs });
  }

  /** Whether a mail waits already, which may have another number now. */
  knows({ uid, item }: Pick<PostponedMail, "uid" | "item">): boolean {
    const known = this.#mails.get(item.id);
    if (known) this.#mails.set(item.id, { ...known, uid });
    return known !== undefined;
  }

  delete(id: string): void {
    this.#mails.delete(id);
  }

  /** Those whose time has come, the first ones first. */
  due(): readonly PostponedMail[] {
    const now = performance.now();
    return [...this.#mails.values()].filter(({ dueAt }) => dueAt <= now).toSorted((a, b) => a.uid - b.uid);
  }

  /** Until the next is due. */
  get nextMs(): number {
    const times = [...this.#mails.values()].map(({ dueAt }) => dueAt);
    return Math.max(0, Math.min(...times) - performance.now());
  }

  hurry(): void {
    for (const [id, mail] of this.#mails) this.#mails.set(id, { ...mail, dueAt: 0 });
  }

  /** How far the mailbox counts as read. @param exceptId of a mail that waits no longer */
  before(position: MailPosition, exceptId: string): MailPosition {
    const others = [...this.#mails.values()].filter(({ item }) => item.id !== exceptId);
    return { ...position, lastUid: Math.min(position.lastUid, ...others.map(({ uid }) => uid - 1)) };
  }
}
