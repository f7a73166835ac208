/**
 * Mails whose transform failed: each is retried a little later, while later mails proceed. The stored position stays
 * before the first of them, so that a crash loses none.
 */
import type { MailItem } from "./message.ts";
import type { MailPosition } from "./position.ts";

/** If more fail, the mailbox stops: then the transform is at fault, not a mail. */
const POSTPONED_MAX = 3;

export interface PostponedMail {
  readonly uid: number;
  readonly item: MailItem;
  /** Tries so far. */
  readonly failures: number;
}

interface Waiting extends PostponedMail {
  /** By `performance.now()`: independent of the system clock. */
  readonly dueAt: number;
}

export class Postponed {
  /** Keyed by message id: UIDs may change. */
  readonly #mails = new Map<string, Waiting>();

  get isFull(): boolean {
    return this.#mails.size >= POSTPONED_MAX;
  }

  put(mail: PostponedMail, afterMs: number): void {
    this.#mails.set(mail.item.id, { ...mail, dueAt: performance.now() + afterMs });
  }

  /** True if a mail is waiting already, perhaps under another UID. */
  knows({ uid, item }: Pick<PostponedMail, "uid" | "item">): boolean {
    const known = this.#mails.get(item.id);
    if (known) this.#mails.set(item.id, { ...known, uid });
    return known !== undefined;
  }

  delete(id: string): void {
    this.#mails.delete(id);
  }

  due(): readonly PostponedMail[] {
    const now = performance.now();
    return [...this.#mails.values()].filter(({ dueAt }) => dueAt <= now).toSorted((a, b) => a.uid - b.uid);
  }

  /** Milliseconds until the next one is due. */
  get nextMs(): number {
    const times = [...this.#mails.values()].map(({ dueAt }) => dueAt);
    return Math.max(0, Math.min(...times) - performance.now());
  }

  hurry(): void {
    for (const [id, mail] of this.#mails) this.#mails.set(id, { ...mail, dueAt: 0 });
  }

  /**
   * The position to store.
   * @param exceptId id of a mail that is no longer waiting
   */
  before(position: MailPosition, exceptId: string): MailPosition {
    const others = [...this.#mails.values()].filter(({ item }) => item.id !== exceptId);
    return { ...position, lastUid: Math.min(position.lastUid, ...others.map(({ uid }) => uid - 1)) };
  }
}
