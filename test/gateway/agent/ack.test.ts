import { describe, expect, test } from "bun:test";
import { replyToSend, stripAck } from "../../../src/gateway/agent/ack.ts";

describe("an acknowledgement", () => {
  test.each([
    ["HEARTBEAT_OK", ""],
    ["  HEARTBEAT_OK\n", ""],
    ["HEARTBEAT_OK.", ""],
    ["**HEARTBEAT_OK**", ""],
    ["`HEARTBEAT_OK`", ""],
    ["<b>HEARTBEAT_OK</b>&nbsp;", ""],
    ["HEARTBEAT_OK HEARTBEAT_OK", ""],
    ["HEARTBEAT_OK. Disk is at 80%", "Disk is at 80%"],
    ["HEARTBEAT_OK: all well", "all well"],
    ["All well. HEARTBEAT_OK", "All well."],
    ["**HEARTBEAT_OK** All well. _HEARTBEAT_OK_!", "All well. _"],
    ["> HEARTBEAT_OK", ""],
    ["- HEARTBEAT_OK", ""],
    ["```\nHEARTBEAT_OK\n```", ""],
    ["HEARTBEAT_OK 🔥", "🔥"],
    ["", ""],
    [" \n", ""],
  ])("%p is an acknowledgement with the remaining text %p", (reply, text) => {
    expect(stripAck(reply)).toEqual({ isAck: true, text });
  });

  test.each([
    "The token HEARTBEAT_OK means that all is well",
    "HEARTBEAT_OKAY",
    "MY_HEARTBEAT_OK2",
    "XHEARTBEAT_OK",
    "heartbeat_ok",
    "Disk almost full",
  ])("%p is not an acknowledgement", (reply) => {
    expect(stripAck(reply)).toEqual({ isAck: false, text: reply });
  });

  test("is recognized in linear time, also with many tokens and blanks", () => {
    expect(stripAck("HEARTBEAT_OK ".repeat(20_000)).text).toBe("");
    expect(stripAck(`${"*".repeat(200_000)}x`).isAck).toBe(false);
    expect(stripAck(`x${"<".repeat(200_000)}`).isAck).toBe(false);
    for (const blank of [" ", "\u00a0", "&nbsp;", "<b>", "*", "< >"]) {
      expect(stripAck(`*${blank.repeat(20_000)}x`).isAck).toBe(false);
      expect(stripAck(`x HEARTBEAT_OK${blank.repeat(150)}x`).isAck).toBe(false);
    }
  }, 60_000);
});

describe("the text to send from a reply", () => {
  test.each([
    ["Disk almost full on db1", 300, "Disk almost full on db1"],
    ["HEARTBEAT_OK", 300, undefined],
    ["", 300, undefined],
    [`HEARTBEAT_OK ${"x".repeat(300)}`, 300, undefined],
    [`HEARTBEAT_OK ${"x".repeat(301)}`, 300, "x".repeat(301)],
    ["HEARTBEAT_OK Disk almost full", 0, "Disk almost full"],
    ["HEARTBEAT_OK", 0, undefined],
    ["<i>HEARTBEAT_OK</i>", 0, undefined],
    ["Disk almost full. HEARTBEAT_OK", 10, "Disk almost full."],
  ])("%p with a limit of %p: %p", (reply, ackMaxChars, sent) => {
    expect(replyToSend(reply, ackMaxChars)).toBe(sent);
  });
});
