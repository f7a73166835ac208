/** The chats of a browser, without a browser: an in-memory database with controlled answers. */
import { expect, test } from "bun:test";
import type { ChatParts } from "../../src/page/app/chat/chat-types.ts";
import { Chats } from "../../src/page/app/chat/chats.ts";
import type { ChatDatabase } from "../../src/page/app/chat/database.ts";
import { memoryDatabase } from "../../src/page/app/chat/memory-database.ts";
import type { Chat } from "../../src/page/app/chat/tree.ts";
import { en } from "../../src/page/app/words/en.ts";

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

const NOTHING = async function* () {};

function chatsOn(db: ChatDatabase, more: Partial<ChatParts> = {}): Chats {
  return new Chats({
    db,
    answerers: { server: NOTHING, page: NOTHING, webllm: NOTHING },
    offer: async () => [],
    watchLoad: () => () => {},
    notify: () => {},
    words: () => en,
    locks: undefined,
    channel: undefined,
    ...more,
  });
}

test("the chat that was opened last is shown, whichever is loaded first", async () => {
  const kept = memoryDatabase();
  await kept.save({ chats: [chat("quick"), chat("slow")] });
  const reading = Promise.withResolvers<void>();
  const chats = chatsOn({
    ...kept,
    messages: async (id) => {
      if (id === "slow") await reading.promise;
      return kept.messages(id);
    },
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

test("a change in one tab survives the end of an answer in another tab", async () => {
  const db = memoryDatabase();
  await db.save({ chats: [chat("c")] });
  const channels = [1, 2].map(() => new BroadcastChannel("chats-of-two-tabs"));
  const answered = Promise.withResolvers<void>();
  const server = async function* () {
    await answered.promise;
    yield { kind: "done", reason: "stop" } as const;
  };
  const answering = chatsOn(db, { channel: channels[0]!, answerers: { server, page: NOTHING, webllm: NOTHING } });
  const other = chatsOn(db, { channel: channels[1]! });
  try {
    await answering.show("c");
    await answering.ask("c", { content: "Hello", pictures: [], files: [] });
    await until(() => answering.running.value.has("c"));
    await other.change("c", { title: "Renamed", system: "Be brief." });
    await until(() => answering.list.value[0]?.title === "Renamed");
    answered.resolve();
    await until(() => !answering.running.value.has("c"));
    const [kept] = await db.chats();
    const messages = await db.messages("c");
    expect([kept?.title, kept?.system, kept?.leaf]).toEqual(["Renamed", "Be brief.", messages.at(-1)!.id]);
    expect(messages.map(({ role, state }) => [role, state])).toEqual([
      ["user", undefined],
      ["assistant", undefined],
    ]);
  } finally {
    for (const channel of channels) channel.close();
  }
});

async function until(check: () => boolean): Promise<void> {
  for (let tries = 0; tries < 2000 && !check(); tries++) await Bun.sleep(5);
  expect(check()).toBe(true);
}
