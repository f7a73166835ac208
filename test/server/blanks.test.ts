import { expect, test } from "bun:test";
import type { ChosenLogprob, InferenceEvent } from "../../src/runtime/runtime.ts";
import { withoutBlanks } from "../../src/server/blanks.ts";
import { DONE } from "./fakes.ts";

const text = (value: string): InferenceEvent => ({ kind: "text", text: value });
const call: InferenceEvent = { kind: "toolCall", call: { function: { name: "f", arguments: {} } } };
const thought: InferenceEvent = { kind: "thinking", text: "hm" };
const chosen = (token: string): ChosenLogprob[] => [{ token, bytes: [], logprob: 0, top: [] }];

async function after(...events: InferenceEvent[]): Promise<InferenceEvent[]> {
  async function* play(): AsyncGenerator<InferenceEvent, void, void> {
    yield* events;
  }
  return Array.fromAsync(withoutBlanks(play()));
}

test.each([
  [
    "blanks that begin a text come with it",
    [text(" "), text("\n"), text("a"), text(" "), text(" "), text("b"), DONE],
    [text(" \na"), text(" "), text(" "), text("b"), DONE],
  ],
  ["blanks before and after calls go", [text("\n"), call, text("\n"), call, text(" "), DONE], [call, call, DONE]],
  [
    "blanks before a call are not those of the text after it",
    [text("\n"), call, text(" a"), DONE],
    [call, text(" a"), DONE],
  ],
  [
    "blanks around thinking stay with the text",
    [text(" "), thought, text("\n"), text("a"), DONE],
    [thought, text(" \na"), DONE],
  ],
  ["an answer of blanks alone stays", [text(" "), text("\n"), DONE], [text(" \n"), DONE]],
  ["an answer without text stays", [DONE], [DONE]],
])("%s", async (_, given, wanted) => {
  expect(await after(...given)).toEqual(wanted);
});

test("log probabilities stay with their text; those of thinking go", async () => {
  const logged = (value: string, token: string): InferenceEvent => ({
    kind: "text",
    text: value,
    logprobs: chosen(token),
  });
  expect(await after(logged("", "t"), thought, logged(" ", "a"), logged("", "b"), logged("c", "c"), DONE)).toEqual([
    thought,
    { kind: "text", text: " c", logprobs: [...chosen("a"), ...chosen("b"), ...chosen("c")] },
    DONE,
  ]);
});
