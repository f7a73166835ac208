import { expect, test } from "bun:test";
import type { ChosenLogprob } from "../../../src/runtime/requests/runtime.ts";
import type { AnswerEvent } from "../../../src/server/answers/answer.ts";
import { withoutBlanks } from "../../../src/server/answers/blanks.ts";
import { DONE } from "../fakes.ts";

const text = (value: string): AnswerEvent => ({ kind: "text", text: value });
const call: AnswerEvent = { kind: "toolCall", call: { function: { name: "f", arguments: {} } } };
const thought: AnswerEvent = { kind: "thinking", text: "hm" };
const chosen = (token: string): ChosenLogprob[] => [{ id: 1, token, bytes: [], logprob: 0, top: [] }];

function after(...events: AnswerEvent[]): readonly AnswerEvent[] {
  return events.flatMap(withoutBlanks());
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
])("%s", (_, given, wanted) => {
  expect(after(...given)).toEqual(wanted);
});

test("log probabilities of held blanks come with the text after them; those before thinking are dropped", async () => {
  const logged = (value: string, token: string): AnswerEvent => ({
    kind: "text",
    text: value,
    logprobs: chosen(token),
  });
  expect(after(logged("", "t"), thought, logged(" ", "a"), logged("", "b"), logged("c", "c"), DONE)).toEqual([
    thought,
    { kind: "text", text: " c", logprobs: [...chosen("a"), ...chosen("b"), ...chosen("c")] },
    DONE,
  ]);
});
