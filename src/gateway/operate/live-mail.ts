/**
 * The mail listener of the current configuration, on one node: restarted when its settings change. It writes only while
 * its node leads.
 */
import { AppError, messageOf } from "../../base/index.ts";
import type { Lease } from "../database/peers.ts";
import type { Transaction } from "../database/store.ts";
import { mailAccount } from "../hooks/mail/config.ts";
import { MailListener, type ListenerDeps, type ListenerSettings } from "../hooks/mail/listener.ts";
import { noMails, type MailStatus } from "../hooks/mail/status.ts";
import type { GatewaySnapshot } from "./snapshot.ts";

export class LiveMail {
  readonly #deps: ListenerDeps;
  readonly #lease: Lease;
  #settings: ListenerSettings | undefined;
  #listener: MailListener | undefined;
  /** The chain of changes: one listener ends before the next begins. */
  #changes: Promise<void> = Promise.resolve();
  #isOver = false;

  constructor(deps: Omit<ListenerDeps, "mails">, lease: Lease) {
    this.#deps = { ...ledBy(lease, deps), mails: noMails() };
    this.#lease = lease;
  }

  /** @param snapshot read whenever a listener may begin */
  start(snapshot: () => GatewaySnapshot): void {
    this.#lease.onChange(() => this.load(snapshot()));
    this.load(snapshot());
  }

  load(snapshot: GatewaySnapshot): void {
    const settings = this.#lease.isHeld ? settingsOf(snapshot) : undefined;
    if (this.#isOver) return;
    if (Bun.deepEquals(settings, this.#settings)) return this.#listener?.poke(); // its problem may be solved
    this.#settings = settings;
    this.#change(settings);
  }

  get status(): MailStatus | undefined {
    return this.#listener?.status;
  }

  async stop(): Promise<void> {
    this.#isOver = true;
    this.#change(undefined);
    await this.#changes;
  }

  #change(settings: ListenerSettings | undefined): void {
    const before = this.#listener;
    this.#listener = settings && new MailListener(this.#deps, settings);
    const next = this.#listener;
    this.#changes = this.#changes
      .then(() => before?.stop())
      .then(() => {
        if (next === this.#listener) next?.start(); // otherwise another replaced it meanwhile
      })
      .catch((error: unknown) => this.#deps.log.error("bug", { error: messageOf(error) }));
  }
}

/** The settings of a listener; undefined: none is configured. */
function settingsOf({ hooks, folder }: GatewaySnapshot): ListenerSettings | undefined {
  const account = hooks.enabled ? mailAccount(hooks.mail, folder) : undefined;
  if (!account || !hooks.mail) return undefined;
  const { pollSeconds, includeBody, maxBytes } = hooks.mail;
  return { account, mail: { pollSeconds, includeBody, maxBytes } };
}

/** Makes its writes and acceptances fail once another node leads. */
function ledBy(lease: Lease, deps: Omit<ListenerDeps, "mails">): Omit<ListenerDeps, "mails"> {
  function* check<T>(transaction: () => Transaction<T>): Transaction<T> {
    if (yield* lease.holds()) return yield* transaction();
    throw new AppError("conflict", "another node listens to the mailbox by now");
  }
  const { store, accept } = deps;
  const led: ListenerDeps["store"] = {
    write: (transaction) => store.write(() => check(transaction)),
    read: (transaction) => store.read(transaction),
  };
  return {
    ...deps,
    store: led,
    accept: (request) => accept({ ...request, alongside: () => check(request.alongside ?? nothing) }),
  };
}

function* nothing(): Transaction<void> {
  yield* [];
}
