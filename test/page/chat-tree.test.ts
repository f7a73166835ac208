/** A chat as a tree, its files, and the messages for the model. */
import { describe, expect, test } from "bun:test";
import { findChats } from "../../src/page/app/chat/search.ts";
import { memoryDatabase } from "../../src/page/app/chat/memory-database.ts";
import { fileOf, readChatFile } from "../../src/page/app/chat/transfer.ts";
import {
  leafUnder,
  pathTo,
  siblingsOf,
  titleOf,
  wireMessages,
  withDescendants,
  type Chat,
  type Message,
  type ToolCall,
} from "../../src/page/app/chat/tree.ts";

const message = (id: string, parent: string | null, more: Partial<Message> = {}): Message => ({
  id,
  chat: "c",
  parent,
  role: "user",
  content: id,
  at: 1,
  ...more,
});
const chat: Chat = {
  id: "c",
  title: "Cats",
  at: 1,
  updated: 2,
  model: "m",
  place: "server",
  system: "",
  options: {},
  tools: "",
  leaf: "d",
};

// a ─┬─ b ─── d
//    └─ c ─── e
const list = [
  message("a", null),
  message("b", "a", { role: "assistant" }),
  message("c", "a", { role: "assistant" }),
  message("d", "b"),
  message("e", "c"),
];
const tree = new Map(list.map((each) => [each.id, each]));
const ids = (messages: readonly Message[]): string => messages.map(({ id }) => id).join("");

describe("a chat as a tree", () => {
  test("shows the path to its leaf, and goes to the newest end of another branch", () => {
    expect(ids(pathTo(tree, "d"))).toBe("abd");
    expect(ids(siblingsOf(tree, tree.get("b")!))).toBe("bc");
    expect(leafUnder(tree, "c")).toBe("e");
    expect(leafUnder(tree, "a")).toBe("e");
    expect([...withDescendants(tree, "c")].join("")).toBe("ce");
  });

  test("does not loop if messages of a file are their own ancestors", () => {
    const circle = new Map([message("x", "y"), message("y", "x")].map((each) => [each.id, each]));
    expect(ids(pathTo(circle, "x"))).toBe("yx");
    expect(["x", "y"]).toContain(leafUnder(circle, "x"));
  });

  test("has its first line as its title", () => {
    const names = { picture: "A picture", newChat: "A new chat" };
    expect(titleOf({ content: "\n  What is a cat?\nTell me." }, names)).toBe("What is a cat?");
    expect(titleOf({ content: "word ".repeat(40) }, names).length).toBeLessThanOrEqual(58);
    expect(titleOf({ content: "", files: [{ name: "a.txt", text: "" }] }, names)).toBe("a.txt");
    expect(titleOf({ content: "", pictures: [{ type: "image/png", base64: "" }] }, names)).toBe("A picture");
  });
});

test("the model gets the system text, files within fences that their text cannot close, and pictures", () => {
  const asked = message("a", null, {
    content: "What is it?",
    files: [{ name: "a.md", text: "````\nx\n````" }],
    pictures: [{ type: "image/png", base64: "AAAA" }],
  });
  const called = message("b", "a", {
    role: "assistant",
    calls: [{ name: "f", arguments: { x: 1 } }],
    state: "stopped",
    error: "no",
  });
  const given = wireMessages("Be brief.", [asked, called, message("t", "b", { role: "tool", toolName: "f" })]);
  expect(given).toEqual([
    { role: "system", content: "Be brief." },
    { role: "user", content: "a.md:\n\n`````\n````\nx\n````\n`````\n\nWhat is it?", images: ["AAAA"] },
    { role: "assistant", content: "b", tool_calls: [{ function: { name: "f", arguments: { x: 1 } } }] },
    { role: "tool", content: "t", tool_name: "f" },
  ]);
  expect(wireMessages(" ", [message("a", null)])).toEqual([{ role: "user", content: "a" }]);
});

describe("a file of chats", () => {
  test("is imported with new ids and the same tree", () => {
    const { chats, messages } = readChatFile(JSON.stringify(fileOf([chat], list)));
    const [read] = chats;
    expect({ ...read!, id: "c", leaf: "d" } as Chat).toEqual(chat);
    expect(read!.id).not.toBe("c");
    const known = new Map(messages.map((each) => [each.id, each]));
    expect(pathTo(known, read!.leaf).map(({ content }) => content)).toEqual(["a", "b", "d"]);
    expect(messages.every((each) => each.chat === read!.id)).toBe(true);
  });

  test("has its branches in order of creation, whatever their order in the file", () => {
    const branches = Array.from({ length: 20 }, (_, i) => message(`b${i}`, "a", { role: "assistant", at: 2 + i }));
    const file = fileOf([{ ...chat, leaf: "b19" }], [...branches.toReversed(), message("a", null)]);
    const { messages } = readChatFile(JSON.stringify(file));
    const known = new Map(messages.map((each) => [each.id, each]));
    const beside = siblingsOf(
      known,
      messages.find(({ content }) => content === "b7")!,
    );
    expect(beside.map(({ content }) => content)).toEqual(branches.map(({ content }) => content));
    const asked = messages.find(({ content }) => content === "a")!;
    expect(known.get(leafUnder(known, asked.id))!.content).toBe("b19");
  });

  test("keeps tool calls and their results, but no permission to call", () => {
    const result = { content: "<<<x>>>", text: "x", isCut: false, isError: false };
    const call = { id: "1", name: "s__t", arguments: {}, tool: { server: "s", name: "t" }, isBegun: true, result };
    const allowing: Chat = { ...chat, leaf: "b", servers: ["s"], standing: { "s/t": "always" } };
    const said = [message("a", null), message("b", "a", { role: "assistant", calls: [call as ToolCall] })];
    const read = readChatFile(JSON.stringify(fileOf([allowing], said)));
    expect(read.messages[1]!.calls).toEqual([call as ToolCall]);
    expect([read.chats[0]!.servers, read.chats[0]!.standing]).toEqual([undefined, undefined]);
    expect(wireMessages("", read.messages).slice(1)).toEqual([
      { role: "assistant", content: "b", tool_calls: [{ id: "1", function: { name: "s__t", arguments: {} } }] },
      { role: "tool", content: "<<<x>>>", tool_name: "s__t", tool_call_id: "1" },
    ]);
  });

  test.each([
    ["[]", /expected an object/],
    ['{"format":"other","version":1,"chats":[],"messages":[]}', /format: expected "hearth-chats", got "other"/],
    ['{"format":"hearth-chats","version":2,"chats":[],"messages":[]}', /version: expected 1, got 2/],
    ['{"format":"hearth-chats","version":1,"chats":{},"messages":[]}', /chats: expected a list/],
    [JSON.stringify(fileOf([chat], [message("a", null, { role: "system" as "user" })])), /role: expected user/],
    [
      JSON.stringify(fileOf([chat], [message("a", null, { pictures: [{ type: "image/svg+xml", base64: "" }] })])),
      /'image\/svg\+xml' is not a picture/,
    ],
    [
      JSON.stringify(fileOf([chat], [message("a", null, { pictures: [{ type: "image/png", base64: '"><x' }] })])),
      /not base64/,
    ],
    ["{", /JSON/],
  ])("is refused with the field that is wrong: %#", (text, why) => {
    expect(() => readChatFile(text)).toThrow(why);
  });
});

test("chats are found by title and by message, with the text around the match", async () => {
  const db = memoryDatabase();
  await db.save({
    chats: [chat],
    messages: [message("a", null, { content: `${"x ".repeat(80)}a\nTABBY cat${" y".repeat(80)}` })],
  });
  const [byTitle] = await findChats({ db, chats: [chat] }, "cats");
  expect(byTitle).toEqual({ chat, around: "Cats", from: 0, to: 4 });
  const [found, ...others] = await findChats({ db, chats: [chat] }, " tabby ");
  expect(others).toEqual([]);
  expect(found!.message).toBe("a");
  expect(found!.around.slice(found!.from, found!.to)).toBe("TABBY");
  expect(found!.around).toMatch(/^….* TABBY cat .*…$/);
  const [spread] = await findChats({ db, chats: [chat] }, "cat tabby");
  expect(spread!.around.slice(spread!.from, spread!.to)).toBe("cat");
  expect(await findChats({ db, chats: [chat] }, "cat dog")).toEqual([]);
  await db.save({ messages: [message("b", "a", { content: "a cat, a tabby" })] });
  const ids = (await findChats({ db, chats: [chat] }, "tabby cat")).map((each) => each.message);
  expect(ids).toEqual(["a", "b"]); // the whole text is before its words in a newer message
  expect(await findChats({ db, chats: [chat] }, "  ")).toEqual([]);
});
