/** The mail listener of the configuration as it is now: begun again when what concerns it changes. */
import { messageOf } from "../base/errors.ts";
import { mailAccount } from "../hooks/mail/config.ts";
import { MailListener, type ListenerDeps, type ListenerSettings } from "../hooks/mail/listener.ts";
import { noMails, type MailStatus } from "../hooks/mail/status.ts";
import type { GatewaySnapshot } from "./snapshot.ts";

export class LiveMail {
  readonly #deps: ListenerDeps;
  #settings: ListenerSettings | undefined;
  #listener: MailListener | undefined;
  /** The changes so far: one listener ends before the next begins. */
  #changes: Promise<void> = Promise.resolve();
  #isOver = false;

  constructor(deps: Omit<ListenerDeps, "mails">) {
    this.#deps = { ...deps, mails: noMails() };
  }

  load(snapshot: GatewaySnapshot): void {
    const settings = settingsOf(snapshot);
    if (this.#isOver) return;
    if (Bun.deepEquals(settings, this.#settings)) return this.#listener?.poke(); // what it waits for may be there
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
        if (next === this.#listener) next?.start(); // else another took its place in the meantime
      })
      .catch((error: unknown) => this.#deps.log.error("bug", { error: messageOf(error) }));
  }
}

/** What a listener is begun with; undefined: there is none. */
function settingsOf({ hooks, folder }: GatewaySnapshot): ListenerSettings | undefined {
  const account = hooks.enabled ? mailAccount(hooks.mail, folder) : undefined;
  if (!account || !hooks.mail) return undefined;
  const { pollSeconds, includeBody, maxBytes } = hooks.mail;
  return { account, mail: { pollSeconds, includeBody, maxBytes } };
}
