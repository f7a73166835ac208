import { expect, test } from "bun:test";
import { ShareLimit } from "../../../../src/gateway/hooks/ingress/share-limit.ts";

test("an address takes at most its share, and leaves room to others", () => {
  const bytes = new ShareLimit({ max: 100, share: 60 });
  expect([bytes.take("a", 40), bytes.take("a", 21), bytes.take("a", 20)]).toEqual([true, false, true]);
  expect([bytes.take("b", 41), bytes.take("b", 30)]).toEqual([false, true]);
  expect([bytes.take("c", 11), bytes.take("c", 10)]).toEqual([false, true]);
  bytes.give("a", 60);
  expect([bytes.take("c", 50), bytes.take("a", 11), bytes.take("a", 10)]).toEqual([true, false, true]);
});

test("a slot is free again once its work succeeds or fails", async () => {
  const places = new ShareLimit({ max: 1, share: 1 });
  const full = () => new Error("full");
  const open = Promise.withResolvers<string>();
  const first = places.run("a", () => open.promise, full);
  await expect(places.run("b", async () => "b", full)).rejects.toThrow("full");
  open.reject(new Error("broken"));
  await expect(first).rejects.toThrow("broken");
  expect(await places.run("b", async () => "b", full)).toBe("b");
});
