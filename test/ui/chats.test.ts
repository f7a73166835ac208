/** The chats of a browser, without one: a database in memory that answers when it is told to. */
import { expect, test } from "bun:test";
import { Chats } from "../../src/ui/app/chat/chats.ts";
import { memoryDatabase } from "../../src/ui/app/chat/memory-database.ts";
import type { Chat } from "../../src/ui/app/chat/tree.ts";

const chat = (id: string): Chat => ({
  id,
  title: id,
  at: 1,
  updated: 1,
  model: "m",
  place: "server",
  system: "",
  options: {},
  tools: "",
  leaf: null,
});

test("of chats that are asked for one after the other the last is shown, whichever is read first", async () => {
  const kept = memoryDatabase();
  await kept.save({ chats: [chat("quick"), chat("slow")] });
  const reading = Promise.withResolvers<void>();
  const db: typeof kept = {
    ...kept,
    messages: async (id) => {
      if (id === "slow") await reading.promise;
      return kept.messages(id);
    },
  };
  const never = async function* () {};
  const chats = new Chats({
    db,
    answerers: { server: never, page: never, webllm: never },
    watchLoad: () => () => {},
    notify: () => {},
    locks: undefined,
    channel: undefined,
  });
  await chats.show("quick");
  const late = chats.show("slow");
  await chats.show("quick");
  reading.resolve();
  await late;
  expect(chats.open.value?.chat.value.id).toBe("quick");
  await chats.show("slow");
  expect(chats.open.value?.chat.value.id).toBe("slow");
});
