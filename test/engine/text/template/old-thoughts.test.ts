import { expect, test } from "bun:test";
import { forgetsThoughts, withoutOldThoughts } from "../../../../src/engine/text/template/old-thoughts.ts";
import type { PromptMessage } from "../../../../src/engine/text/template/messages.ts";

const user = (content: string): PromptMessage => ({ role: "user", content });
const assistant = (content: string): PromptMessage => ({ role: "assistant", content });

test("old thoughts are dropped for the family qwen3 and the name deepseek-r1", () => {
  expect(forgetsThoughts({ family: "qwen3", name: "anything" })).toBe(true);
  expect(forgetsThoughts({ family: "qwen2", name: "deepseek-r1" })).toBe(true);
  expect(forgetsThoughts({ family: "llama", name: "deepseek-r1-distill" })).toBe(false);
  expect(forgetsThoughts({ family: undefined, name: "qwen3" })).toBe(false);
});

test("thoughts are dropped from answers before the last question", () => {
  const messages = [
    user("a <think>b</think>"),
    assistant(" <think>Thinking... about the answer</think>\n\nabc"),
    assistant("no thoughts <think>here</think>"),
    assistant("<think>without an end"),
    user("d"),
    assistant("<think>of now</think>e"),
  ];
  expect(withoutOldThoughts(messages).map(({ content }) => content)).toEqual([
    "a <think>b</think>",
    "abc",
    "no thoughts <think>here</think>",
    "",
    "d",
    "<think>of now</think>e",
  ]);
});

test("images keep their places in an answer, and those inside dropped thoughts move to its start", () => {
  const seen = {
    role: "assistant",
    content: "<think>a</think>\n\nbcd",
    images: [1, 2, 3, 4],
    imagesAt: [0, 8, 19, 21],
  };
  const [answer] = withoutOldThoughts([seen, user("e")]);
  expect(answer).toEqual({ ...seen, content: "bcd", imagesAt: [0, 0, 1, 3] });
});
