/** A clock that was ahead, and is set right: no message waits until that time has come. */
import { expect, test } from "bun:test";
import { textOutcome } from "../../../src/channels/outbox/messages.ts";
import { afterTest } from "../../cleanups.ts";
import { eventually } from "../../e2e/hearth.ts";
import { makeBox, scripted } from "../fixtures.ts";

const DAY_MS = 24 * 3_600_000;

test("messages that were put in, or kept apart, while it was ahead leave once it is set back", async () => {
  let aheadMs = DAY_MS;
  const now = (): number => Date.now() + aheadMs;
  const sent: string[] = [];
  const channel = scripted(({ text }) => (sent.push(text), { kind: "sent" }), { spacingMs: 60_000 });
  const box = makeBox([channel], { now });
  afterTest(() => box.remove());
  const put = (groupId: string): Promise<void> =>
    box.store.write(() =>
      box.outbox.add({ groupId, target: { channel: "scripted", to: "ann" }, text: groupId, now: now() }),
    );
  await put("first");
  await box.outbox.start();
  afterTest(() => box.outbox.stop({ graceMs: 0 }));
  expect(await eventually(async () => (await box.store.read(() => textOutcome("first")))?.kind === "sent")).toBe(true);
  await put("second"); // a minute from now, tomorrow
  aheadMs = 0;
  box.outbox.poke();
  expect(await eventually(() => sent.length === 2)).toBe(true);
  expect(sent).toEqual(["first", "second"]);
});
