/**
 * Watches one mailbox: every mail that arrives after the first look becomes a run, once. The mailbox itself is the
 * queue: a mail is marked as handled in the transaction that accepts it, and a mail that cannot be accepted now is
 * tried later.
 */
import { AppError, type Logger, messageOf } from "../../../base/index.ts";
import { external, operator } from "../../agent/boundary/tainted-text.ts";
import type { Transaction } from "../../database/store.ts";
import { retryDelayMs } from "../queue/worker/backoff.ts";
import type { MailAccount, MailConfig } from "./config.ts";
import { handOver, type HandOverDeps, tellMain } from "./hand-over.ts";
import { openMailbox, SOURCE_BYTES_MAX, type Mail, type OpenMailbox } from "./imap.ts";
import { readPassword } from "./password.ts";
import { Postponed, type PostponedMail } from "./postponed.ts";
import { findPosition, isHandled, type MailPosition, setHandled, setPosition } from "./position.ts";
import type { MailOutcome, MailStatus } from "./status.ts";

const MINUTE_MS = 60_000;
const HOUR_MS = 60 * MINUTE_MS;
const DAY_MS = 24 * HOUR_MS;
/** Delays after a refused password: faster attempts get accounts locked. */
const REFUSED_MS = [MINUTE_MS, 5 * MINUTE_MS, 15 * MINUTE_MS, HOUR_MS];
/** Interval of checking a refused password's file for a new one. */
const PASSWORD_LOOK_MS = 5000;
/** Maximum connections that may break on one mail before it is given up. */
const FETCHES_MAX = 5;
/** Longer outages are reported to the main session. */
const DOWN_TOLD_MS = HOUR_MS;
/** Rescan window: mails may arrive late, and IMAP searches by day, in any time zone. */
const RESCAN_MARGIN_MS = 2 * DAY_MS;

export interface ListenerDeps extends HandOverDeps {
  readonly log: Logger;
  readonly random: () => number;
  /** Counters that outlive a listener: its owner keeps them. */
  readonly mails: Record<MailOutcome, number>;
}

export interface ListenerSettings {
  readonly account: MailAccount;
  readonly mail: Pick<MailConfig, "pollSeconds" | "includeBody" | "maxBytes">;
}

export class MailListener {
  readonly #deps: ListenerDeps;
  readonly #settings: ListenerSettings;
  /** Key of the stored position. */
  readonly #key: string;
  readonly #name: string;
  readonly #stopped = new AbortController();
  #ended: Promise<void> = Promise.resolve();
  #status: Omit<MailStatus, "account" | "mailbox" | "mails">;
  #failures = 0;
  /** By `performance.now()`: independent of the system clock. */
  #downSince = performance.now();
  /** The last mail that could not be fetched, and the number of connections that failed on it. */
  #unreadable = { uid: 0, tries: 0 };
  readonly #postponed = new Postponed();
  /** Ends a wait, for time or for news. */
  #wake = (): void => {};
  #wakeBox = (): void => {};

  constructor(deps: ListenerDeps, settings: ListenerSettings) {
    const { user, host, mailbox } = settings.account;
    this.#deps = deps;
    this.#settings = settings;
    this.#name = `${user} at ${host}`;
    this.#key = JSON.stringify([host.toLowerCase(), user.toLowerCase(), mailbox]);
    this.#status = { state: "connecting", since: deps.now() };
  }

  start(): void {
    this.#ended = this.#run().catch((error: unknown) => {
      const fields = { error: messageOf(error), stack: (error as Error)?.stack };
      this.#deps.log.error("bug: the mail listener ended", fields);
    });
  }

  /** Resolves once no work is under way. */
  async stop(): Promise<void> {
    this.#stopped.abort();
    await this.#ended;
  }

  /** Retries waiting work, after a change elsewhere. */
  poke(): void {
    if (this.#status.state === "refused") return;
    this.#postponed.hurry();
    this.#wake();
    this.#wakeBox();
  }

  get status(): MailStatus {
    const { mailbox } = this.#settings.account;
    return { account: this.#name, mailbox, ...this.#status, mails: { ...this.#deps.mails } };
  }

  async #run(): Promise<void> {
    const { signal } = this.#stopped;
    while (!signal.aborted) {
      let password: string | undefined;
      try {
        password = await readPassword(this.#settings.account);
        await this.#connected(password);
      } catch (error) {
        if (signal.aborted) return;
        if (!(error instanceof AppError)) throw error;
        await this.#failed(error, password);
      }
    }
  }

  /** Runs until the connection breaks. */
  async #connected(password: string): Promise<void> {
    const { signal } = this.#stopped;
    const box = await openMailbox(this.#settings.account, { password, signal });
    try {
      let position = await this.#position(box);
      this.#become("connected");
      this.#deps.log.info("watching a mailbox", { account: this.#name, mailbox: this.#settings.account.mailbox });
      this.#wakeBox = () => box.wake();
      while (!signal.aborted) {
        position = await this.#look(box, position);
        await this.#retry(position);
        this.#failures = 0;
        await box.news(Math.min(this.#settings.mail.pollSeconds * 1000, this.#postponed.nextMs));
      }
    } finally {
      this.#wakeBox = () => {};
      this.#downSince = performance.now();
      await box.close();
    }
  }

  /** The position to continue from. Mails already in a new mailbox are not news. */
  async #position(box: OpenMailbox): Promise<MailPosition> {
    const { uidValidity, uidNext } = box;
    const { store, log, now } = this.#deps;
    const found = await store.read(() => findPosition(this.#key));
    if (!found) {
      const beganAt = Math.floor(now() / 1000) * 1000; // servers report whole seconds
      const lastUid = uidNext === undefined ? ((await box.uidsAfter(0)).at(-1) ?? 0) : uidNext - 1;
      const first = { uidValidity, lastUid, beganAt, newestAt: beganAt, sinceAt: 0 };
      await store.write(() => setPosition(this.#key, first));
      return first;
    }
    if (found.uidValidity === uidValidity && (uidNext ?? Infinity) > found.lastUid) return found;
    log.warn("the mail server renumbered its mails; recent mails are compared by their ids", {
      account: this.#name,
    });
    const sinceAt = Math.max(found.beganAt, found.newestAt - RESCAN_MARGIN_MS);
    return { ...found, uidValidity, lastUid: 0, sinceAt };
  }

  /** Handles new mails, in order; returns the new position. */
  async #look(box: OpenMailbox, from: MailPosition): Promise<MailPosition> {
    let position = from;
    const since = from.sinceAt > 0 ? { since: new Date(from.sinceAt - RESCAN_MARGIN_MS) } : {};
    for (const uid of await box.uidsAfter(from.lastUid, since)) {
      if (this.#stopped.signal.aborted) break;
      const mail = await this.#fetch(box, { ...position, lastUid: uid });
      const receivedAt = mail?.receivedAt ?? 0;
      const newestAt = Math.max(position.newestAt, Math.min(receivedAt, this.#deps.now()));
      position = { ...position, lastUid: uid, newestAt };
      if (mail && receivedAt >= from.sinceAt) await this.#handle(mail, position);
      await this.#retry(position);
    }
    return position;
  }

  /** Retries the mails that are due. */
  async #retry(position: MailPosition): Promise<void> {
    for (const mail of this.#postponed.due()) {
      if (this.#stopped.signal.aborted) return;
      await this.#take(mail, position);
    }
  }

  /** Gives up a mail on which several connections failed, so that later ones do not wait for ever. */
  async #fetch(box: OpenMailbox, position: MailPosition): Promise<Mail | undefined> {
    const { lastUid: uid } = position;
    try {
      return await box.fetch(uid);
    } catch (error) {
      if (this.#stopped.signal.aborted) throw error;
      this.#unreadable = { uid, tries: this.#unreadable.uid === uid ? this.#unreadable.tries + 1 : 1 };
      if (this.#unreadable.tries >= FETCHES_MAX) await this.#giveUp(position, messageOf(error));
      throw error;
    }
  }

  async #giveUp(position: MailPosition, reason: string): Promise<void> {
    const { log, mails } = this.#deps;
    const { uidValidity, lastUid: uid } = position;
    const text = operator(`A mail to ${this.#name} cannot be read from its server, and was skipped: number ${uid}.`);
    const itemId = `unreadable ${this.#key} ${uidValidity} ${uid}`;
    const alongside = (): Transaction<void> => setPosition(this.#key, this.#postponed.before(position, ""));
    const { kind } = await tellMain(this.#deps, { account: this.#name, text, itemId, alongside });
    if (kind === "full") return; // the next try reports it
    mails.refused++;
    log.warn("skipped an unreadable mail", { account: this.#name, uid, reason });
  }

  /** Returns once the mail is handled or postponed, or the listener stops. */
  async #handle(mail: Mail, position: MailPosition): Promise<void> {
    const { store, mails } = this.#deps;
    const isCut = mail.source.length >= SOURCE_BYTES_MAX;
    const { parseMail } = await import("./message.ts"); // loaded only by gateways with a mailbox
    const item = await parseMail(mail.source, { ...this.#settings.mail, isCut });
    const { lastUid: uid } = position;
    if (this.#postponed.knows({ uid, item })) return;
    if (await store.read(() => isHandled(this.#key, item.id))) {
      await store.write(this.#mark(item.id, position));
      mails.repeated++;
      return;
    }
    await this.#take({ uid, item, failures: 0 }, position);
  }

  async #take(mail: PostponedMail, position: MailPosition): Promise<void> {
    const { log, mails, now } = this.#deps;
    const outcome = await this.#handOver(mail, this.#mark(mail.item.id, position));
    if (!outcome) return;
    this.#postponed.delete(mail.item.id);
    mails[outcome.kind]++;
    this.#become("connected", { lastMailAt: now() });
    const { kind, ...notes } = outcome;
    log[kind === "refused" ? "warn" : "info"](`a mail was ${kind === "nothing" ? "skipped" : kind}`, {
      account: this.#name,
      uid: mail.uid,
      ...notes,
    });
  }

  /** Stores that a mail was handled, and the position of the mailbox. */
  #mark(id: string, position: MailPosition): () => Transaction<void> {
    const [key, postponed, { now }] = [this.#key, this.#postponed, this.#deps];
    return function* () {
      yield* setPosition(key, postponed.before(position, id));
      yield* setHandled(key, { id, now: now() });
    };
  }

  /** Undefined: the mail was postponed, or the listener stops. */
  async #handOver({ uid, item, failures: before }: PostponedMail, mark: () => Transaction<void>) {
    const { signal } = this.#stopped;
    for (let failures = before; !signal.aborted;) {
      const outcome = await handOver(this.#deps, { item, account: this.#name, failures, mark, signal });
      if (outcome.kind !== "later") return outcome;
      if (outcome.isFailure) failures++;
      if (this.#status.waitsFor !== outcome.reason) {
        this.#deps.log.warn("a mail was postponed and will be handed over later", {
          account: this.#name,
          uid,
          reason: outcome.reason,
        });
      }
      this.#become("waiting", { waitsFor: outcome.reason });
      if (outcome.isFailure && (before > 0 || !this.#postponed.isFull)) {
        this.#postponed.put({ uid, item, failures }, outcome.afterMs);
        return undefined;
      }
      await this.#sleep(outcome.afterMs);
    }
    return undefined;
  }

  async #failed(error: AppError, password: string | undefined): Promise<void> {
    const { log, random, now } = this.#deps;
    const isRefused = error.code === "unauthorized";
    const isNew = this.#status.lastError?.message !== error.message || this.#failures === 0;
    const delayMs = isRefused
      ? (REFUSED_MS[Math.min(this.#failures, REFUSED_MS.length - 1)] ?? HOUR_MS)
      : retryDelayMs(this.#failures + 1, random);
    this.#failures++;
    const nextAttemptAt = now() + delayMs;
    this.#become(isRefused ? "refused" : "down", { lastError: { at: now(), message: error.message }, nextAttemptAt });
    const fields = { account: this.#name, error: error.message, retryMs: delayMs };
    if (isNew) log.warn("watching the mailbox failed", fields);
    else log.debug("watching the mailbox still fails", fields);
    if (isRefused || performance.now() - this.#downSince >= DOWN_TOLD_MS) await this.#tell(error.message);
    if (isRefused) await this.#newPassword(password, delayMs);
    else await this.#sleep(delayMs);
  }

  /** Sends an event to the main session, at most once a day. */
  async #tell(reason: string): Promise<void> {
    const { log, now } = this.#deps;
    const itemId = `down ${this.#key} ${Math.floor(now() / DAY_MS)}`;
    const about = `The mailbox of ${this.#name} cannot be watched: `;
    const text = [...operator(about), ...external(reason)]; // parts of it come from the server
    await tellMain(this.#deps, { account: this.#name, text, itemId }).catch((error: unknown) =>
      log.error("could not send an event to the main session", { error: messageOf(error) }),
    );
  }

  /** Waits, or returns early if the password changed. */
  async #newPassword(refused: string | undefined, delayMs: number): Promise<void> {
    const { account } = this.#settings;
    for (let leftMs = delayMs; leftMs > 0 && !this.#stopped.signal.aborted; leftMs -= PASSWORD_LOOK_MS) {
      await this.#sleep(Math.min(PASSWORD_LOOK_MS, leftMs));
      const current = await readPassword(account).catch(() => refused); // the file may be being written
      if (current !== refused) return;
    }
  }

  #become(state: MailStatus["state"], changes: Partial<MailStatus> = {}): void {
    const { lastMailAt, lastError } = this.#status;
    const since = state === this.#status.state ? this.#status.since : this.#deps.now();
    this.#status = {
      state,
      since,
      ...(lastMailAt === undefined ? {} : { lastMailAt }),
      ...(lastError === undefined ? {} : { lastError }),
      ...changes,
    };
  }

  /** Ends early when the listener stops, or is poked. */
  async #sleep(ms: number): Promise<void> {
    const { signal } = this.#stopped;
    if (signal.aborted) return;
    const { promise, resolve } = Promise.withResolvers<void>();
    this.#wake = resolve;
    const timer = setTimeout(resolve, ms);
    const wake = (): void => resolve();
    signal.addEventListener("abort", wake, { once: true });
    await promise;
    clearTimeout(timer);
    signal.removeEventListener("abort", wake);
  }
}
