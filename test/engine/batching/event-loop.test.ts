import { expect, test } from "bun:test";
import { systemLoop } from "../../../src/engine/batching/event-loop.ts";

test("a pending message is handled between turns", async () => {
  const { port1, port2 } = new MessageChannel();
  const events: string[] = [];
  port1.onmessage = () => void events.push("message");
  port2.postMessage(1);
  const loop = systemLoop();
  for (let i = 0; i < 3; i++) await loop.nextTurn();
  port1.close();
  expect(events).toEqual(["message"]);
});

test("turns come in order without setImmediate, as in a page", async () => {
  const script = `
    const { setImmediate } = globalThis;
    delete globalThis.setImmediate;
    const { systemLoop } = await import("./src/engine/batching/event-loop.ts");
    const loop = systemLoop();
    const order = [];
    await Promise.all([1, 2, 3].map(async (i) => { await loop.nextTurn(); order.push(i); }));
    console.log(order.join());
    process.exit();`;
  const child = Bun.spawn([process.execPath, "-e", script], { cwd: `${import.meta.dir}/../../..`, stderr: "inherit" });
  expect((await child.stdout.text()).trim()).toBe("1,2,3");
});

test("the clock counts nanoseconds", async () => {
  const loop = systemLoop();
  const from = loop.nowNs();
  await Bun.sleep(5);
  expect(loop.nowNs() - from).toBeWithin(4e6, 5e9);
});
