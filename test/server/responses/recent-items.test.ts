import { expect, test } from "bun:test";
import type { Item } from "../../../src/server/responses/response.ts";
import { RecentItems } from "../../../src/server/responses/recent-items.ts";

const item = (id: string, text = ""): Item => ({
  type: "reasoning",
  id,
  status: "completed",
  summary: [{ type: "summary_text", text }],
  encrypted_content: null,
});

test("recently used items are kept, up to a number and a total length", () => {
  const said = new RecentItems();
  for (let i = 0; i < 4096; i++) said.keep("", [item(`m${i}`)]);
  expect(said.find("", "m0")).toMatchObject({ id: "m0" });
  said.keep("", [item("new")]);
  expect([said.find("", "m0"), said.find("", "m1"), said.find("", "new")]).toMatchObject([
    { id: "m0" },
    undefined,
    { id: "new" },
  ]);
  const long = "x".repeat(6 * 2 ** 20);
  for (const id of ["a", "b", "c"]) said.keep("", [item(id, long)]);
  expect([said.find("", "m0"), said.find("", "a")]).toEqual([undefined, undefined]);
  expect(said.find("", "c")).toMatchObject({ id: "c" });
});
