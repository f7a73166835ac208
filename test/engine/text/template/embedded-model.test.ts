/** The embedded model's chat template, against the text that its training showed it (models/hearth/recipe). */
import { readFileSync } from "node:fs";
import { resolve } from "node:path";
import { expect, test } from "bun:test";
import { getString } from "../../../../src/engine/formats/gguf/keys.ts";
import { openGguf } from "../../../../src/engine/formats/files/gguf.ts";
import {
  choosePrompt,
  type PromptMessage,
  type PromptTool,
  renderChat,
} from "../../../../src/engine/text/template/prompt.ts";

const FOLDER = resolve(import.meta.dir, "../../../../models/hearth");

interface Conversation {
  readonly messages: readonly PromptMessage[];
  readonly tools: readonly PromptTool[];
  readonly generate: boolean;
  readonly text: string;
}

function loadConversations(): readonly Conversation[] {
  return JSON.parse(readFileSync(resolve(FOLDER, "recipe/conversations.json"), "utf8")) as Conversation[];
}

function readTemplate(): string {
  const file = openGguf(resolve(FOLDER, "hearth.gguf"));
  try {
    return getString(file.metadata, "tokenizer.chat_template");
  } finally {
    file.close();
  }
}

test("the embedded model's template renders the conversations of its training exactly", () => {
  const prompt = choosePrompt({ jinja: readTemplate() });
  const now = new Date(0);
  for (const { messages, tools, generate, text } of loadConversations()) {
    expect(renderChat(prompt, { messages, tools, now, addGenerationPrompt: generate })).toBe(text);
  }
});
