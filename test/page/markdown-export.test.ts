/** Chats as Markdown for other programs. */
import { expect, test } from "bun:test";
import { Lexer } from "marked";
import { fileNameOf } from "../../src/page/app/base/save-file.ts";
import { chatMarkdown, messageMarkdown } from "../../src/page/app/chat/markdown-export.ts";
import type { Chat, Message } from "../../src/page/app/chat/tree.ts";
import { en } from "../../src/page/app/words/en.ts";

const chat: Chat = {
  id: "c",
  title: "Roots of *x*\n<b>",
  at: 1,
  updated: 1,
  model: "m",
  place: "server",
  system: "Be brief.",
  options: {},
  tools: "",
  leaf: "2",
};
const message = (role: Message["role"], content: string, more: Partial<Message> = {}): Message => ({
  id: content,
  chat: "c",
  parent: null,
  role,
  content,
  at: 1,
  ...more,
});

test("a chat has its title, each message's author and model, and its attachments", () => {
  const files = [{ name: "a.txt", text: "secret" }];
  const pictures = [{ type: "image/png", base64: "AAAA" }];
  const path = [
    message("user", "Look at this.", { files, pictures }),
    message("assistant", "", { model: "qwen3:4b", calls: [{ name: "look", arguments: { at: "```" } }] }),
    message("tool", "a\n```\nb", { toolName: "look" }),
    message("assistant", "# Done", { model: "llama3:latest" }),
  ];
  expect(chatMarkdown(chat, path, en.chat)).toBe(
    [
      "# Roots of \\*x\\* \\<b\\>",
      "## System prompt\n\nBe brief.",
      "## You\n\nAttached: a.txt, 1 picture\n\nLook at this.",
      '## qwen3:4b\n\nCalls look:\n\n```\n{\n  "at": "```"\n}\n```',
      "## Result of look\n\n````\na\n```\nb\n````",
      "## llama3\n\n# Done\n",
    ].join("\n\n"),
  );
});

test.each(["```js\nconst a", "~~~~\n~~~\nx", "````\n```\n", "- a\n\n```\nx\n```\n\n```py\ny"])(
  "a code block of a stopped answer is closed: %j",
  (content) => {
    const text = `${messageMarkdown(message("assistant", content), en.chat)}\n\n## Next`;
    expect(new Lexer().lex(text).at(-1)).toMatchObject({ type: "heading", text: "Next" });
  },
);

test("closed code stays unchanged", () => {
  const content = "```js\nconst a = `b`;\n```\n\n``` `x` ```";
  expect(messageMarkdown(message("assistant", content), en.chat)).toBe(`## Answer\n\n${content}`);
});

test("file names are made of titles in any script", () => {
  expect(fileNameOf("What is 1/2? ../etc", "md")).toBe("What-is-1-2-etc.md");
  expect(fileNameOf("東京の天気", "md")).toBe("東京の天気.md");
  expect(fileNameOf("???", "md")).toBe("chat.md");
});
