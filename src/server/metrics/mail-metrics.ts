/** Metrics of the watched mailbox; empty without one. */
import { Counter, Gauge, type Registry } from "./prom-client.ts";
import type { Gateway } from "../../gateway/index.ts";

interface WatchedMail extends Pick<Gateway, "isDraining"> {
  readonly mail: Pick<Gateway["mail"], "status">;
}

export function watchMail(gateway: WatchedMail, registers: Registry[]): void {
  const mail = () => (gateway.isDraining() ? undefined : gateway.mail.status);
  void new Gauge({
    name: "hearth_mail_connected",
    help: "1 while the mailbox is listened to, else 0",
    registers,
    collect() {
      const found = mail();
      if (found) this.set(found.state === "connected" || found.state === "waiting" ? 1 : 0);
      else this.reset();
    },
  });
  void new Gauge({
    name: "hearth_mail_last_timestamp_seconds",
    help: "Time at which the last mail was handled",
    registers,
    collect() {
      const at = mail()?.lastMailAt;
      if (at !== undefined) this.set(at / 1000);
    },
  });
  void new Counter({
    name: "hearth_mails_total",
    help: "Mails by outcome: accepted, repeated, nothing (the mapping wants no action), refused",
    labelNames: ["outcome"],
    registers,
    collect() {
      const found = mail();
      if (!found) return;
      this.reset();
      for (const [outcome, n] of Object.entries(found.mails)) this.inc({ outcome }, n);
    },
  });
}
