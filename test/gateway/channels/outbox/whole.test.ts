/** Waits of fractional milliseconds, requested by platforms and plugins; tables keep integers. */
import { expect, test } from "bun:test";
import { textOutcome } from "../../../../src/gateway/channels/outbox/messages.ts";
import { eventually } from "../../../e2e/hearth.ts";
import { makeBox, scripted } from "../fixtures.ts";

test.each([1100.25, 2 ** -30, Number.NaN, -5])(
  "a message is sent again after a platform asks for a wait of %d ms",
  async (afterMs) => {
    let tries = 0;
    const channel = scripted(() => (++tries === 1 ? { kind: "retry", reason: "busy", afterMs } : { kind: "sent" }));
    const box = makeBox([channel]);
    await box.outbox.start();
    const target = { channel: "scripted", to: "ann" };
    await box.store.write(() => box.outbox.add({ groupId: "g", target, text: "hello", now: Date.now() }));
    box.outbox.poke();
    const isSent = async (): Promise<boolean> => (await box.store.read(() => textOutcome("g")))?.kind === "sent";
    expect(await eventually(isSent, 10_000)).toBe(true);
    expect(tries).toBe(2);
    await box.outbox.stop({ graceMs: 0 });
    await box.remove();
  },
  20_000,
);
