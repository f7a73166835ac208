/** The words of the page, without a page. */
import { expect, test } from "bun:test";
import { counted } from "../../src/ui/app/words/count.ts";
import { en } from "../../src/ui/app/words/en.ts";

test("a number in a sentence: in the form and the digits of its language", () => {
  expect(en.chat.deleted(1)).toBe("Deleted 1 message.");
  expect(en.chat.deleted(1000)).toBe("Deleted 1,000 messages.");
  expect(counted("de", 1000, { one: "# Chat", other: "# Chats" })).toBe("1.000 Chats");
  expect(counted("fr", 0, { one: "# message", other: "# messages" })).toBe("0 message");
  expect(counted("ja", 1, { other: "#件" })).toBe("1件");
});
