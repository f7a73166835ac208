import { describe, expect, test } from "bun:test";
import { deliveryIdOf } from "../../../../../src/gateway/hooks/mapping/index.ts";
import { makeRequest } from "../view.ts";
import { mappingOf, run, promptOf } from "./run.ts";

describe("slack", () => {
  const event = (fields: object) => ({ type: "event_callback", team_id: "T1", event_id: "Ev1", event: fields });
  test.each<[unknown, readonly string[]]>([
    [
      event({ type: "app_mention", user: "U1", channel: "C1", text: "<@U2> when does\nthe lamp turn?" }),
      ["addressed this app", "Channel: C1", "From: U1", "when does\nthe lamp turn?"],
    ],
    [
      event({
        type: "message",
        user: "U1",
        channel: "C1",
        text: "hi",
        files: [{ name: "a.txt", mimetype: "text/plain" }],
      }),
      ["file a.txt (text/plain)"],
    ],
    [event({ type: "reaction_added", user: "U1", reaction: "tada", item: { channel: "C1" } }), ["Reaction: tada"]],
    [
      { command: "/lamp", text: "on", user_name: "ada", channel_name: "sea" },
      ["Command: /lamp", "Text: on", "From: ada"],
    ],
    [event({ type: "team_rename", name: "New" }), ['"name": "New"']],
  ])("describes event %#", async (payload, parts) => {
    const text = await promptOf("slack", payload);
    for (const each of parts) expect(text).toContain(each);
  });
  test.each([
    [{ bot_id: "B1" }],
    [{ subtype: "bot_message" }],
    [{ subtype: "message_changed", message: { bot_id: "B1" } }],
    [{ subtype: "message_deleted", previous_message: { bot_id: "B1" } }],
  ])("ignores messages of apps: %j", async (fields) =>
    expect(await run("slack", event({ type: "message", text: "loop", ...fields }))).toEqual({ kind: "nothing" }),
  );
  test("makes one item of a message that comes as two events", async () => {
    const itemIdOf = async (fields: object) => {
      const outcome = await run("slack", event({ channel: "C1", text: "hi", ...fields }));
      return outcome.kind === "actions" ? outcome.actions.map(({ itemId }) => itemId) : outcome;
    };
    expect(await itemIdOf({ type: "message", ts: "1.5" })).toEqual(["C1/1.5"]);
    expect(await itemIdOf({ type: "app_mention", ts: "1.5" })).toEqual(["C1/1.5"]);
    expect(await itemIdOf({ type: "channel_rename" })).toEqual([undefined]);
  });
  test("takes the delivery id from event_id", () =>
    expect(deliveryIdOf(mappingOf("slack"), makeRequest({ payload: event({}) }))).toBe("Ev1"));
});
