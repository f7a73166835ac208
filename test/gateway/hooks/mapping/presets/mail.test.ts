import { describe, expect, test } from "bun:test";
import { plain } from "../../../../../src/gateway/agent/boundary/tainted-text.ts";
import { mappingOf, run } from "./run.ts";

describe("mail", () => {
  const messages = [
    {
      id: "m1",
      from: "ada@example.com",
      subject: "Lamp",
      snippet: "It is dark",
      body: "It is dark since nine.\nPlease look.",
    },
    { from: "bob@example.com", subject: "Boat", snippet: "When?" },
    { from: "bob@example.com", subject: "Boat", snippet: "Now?" },
  ];
  const batch = async (list: unknown) => {
    const outcome = await run("mail", { source: "gmail", messages: list });
    return outcome.kind === "actions" ? outcome.actions : expect.unreachable(JSON.stringify(outcome));
  };

  test("makes a run of each message of a batch", async () => {
    const actions = await batch(messages);
    expect(actions.map(({ message }) => plain(message).split("\n").at(-1))).toEqual(["Please look.", "When?", "Now?"]);
    expect(plain(actions[0]!.message)).toContain("From: ada@example.com\nSubject: Lamp\nIt is dark");
  });

  test("gives each message its own session, the same for a repeated message", async () => {
    const keys = (await batch(messages)).map(({ sessionKey }) => sessionKey);
    expect(keys[0]).toBe("hook:mail:m1");
    expect(new Set(keys).size).toBe(3);
    expect(keys[1]).toMatch(/^hook:mail:[0-9a-f]{32}$/);
    expect((await batch(messages.toReversed())).map(({ sessionKey }) => sessionKey)).toEqual(keys.toReversed());
  });

  test("handles a message with an id once, and equal ones without an id separately", async () => {
    const actions = await batch([messages[0], messages[1], messages[1]]);
    expect(actions.map(({ itemId }) => itemId)).toEqual(["m1", undefined, undefined]);
  });

  test.each([
    ["a\nb", /^hook:mail:a b$/, /^[0-9a-f]{32}$/],
    ["x".repeat(300), /^hook:mail:[0-9a-f]{32}$/, /^[0-9a-f]{32}$/],
    [7, /^hook:mail:7$/, /^7$/],
  ])("accepts an id like %j", async (id, sessionKey, itemId) => {
    const [action] = await batch([{ ...messages[1], id }]);
    expect(action?.sessionKey).toMatch(sessionKey);
    expect(action?.itemId).toMatch(itemId);
  });

  test("quotes a body up to a limit", async () => {
    const [action] = await batch([{ id: 1, from: "a", body: "x".repeat(50_000) }]);
    expect(plain(action!.message).length).toBeLessThan(20_300);
  });

  test("runs nothing without messages", async () =>
    expect(await run("mail", { source: "gmail", messages: [] })).toEqual({ kind: "nothing" }));

  test.each<[unknown, string]>([
    [{}, "'messages': expected a list"],
    [{ messages: "x" }, "'messages': expected a list"],
    [{ messages: [messages[0], "x"] }, "messages[1]: expected an object"],
    [{ messages: [{ id: 5 }] }, "messages[0]: expected from, subject or snippet"],
  ])("refuses %j", async (payload, reason) =>
    expect(await run("mail", payload)).toMatchObject({
      kind: "failed",
      code: "bad_request",
      reason: expect.stringContaining(reason),
    }),
  );

  test("allows larger bodies than other mappings", () => expect(mappingOf("mail").config.maxBodyBytes).toBe(6_819_200));
});
