/** Tools without a schema that the client runs: the model gets one, which their own helpers' inputs fit. */
import { expect, test } from "bun:test";
import type { MemoryToolHandlers } from "@anthropic-ai/sdk/helpers/beta/memory";
import { readTools } from "../../../src/server/anthropic/tools.ts";

const commandsOf = (type: string): unknown => {
  const [tool] = readTools([{ type, name: "n" }]).tools;
  expect(tool?.function).toMatchObject({ name: "n", description: expect.any(String) });
  const { properties } = tool!.function.parameters as { properties: Record<string, { enum?: unknown }> };
  return { all: Object.keys(properties), commands: properties["command"]?.enum };
};

test("the bash tool takes a command and a restart", () => {
  expect(commandsOf("bash_20250124")).toEqual({ all: ["command", "restart"], commands: undefined });
});

const FIELDS = ["command", "path", "file_text", "old_str", "new_str", "insert_line", "view_range"];

test("each version of the text editor tool has its own commands and fields", () => {
  const edits = ["view", "create", "str_replace", "insert"];
  expect(commandsOf("text_editor_20250124")).toEqual({ all: FIELDS, commands: [...edits, "undo_edit"] });
  expect(commandsOf("text_editor_20250429")).toEqual({ all: FIELDS, commands: edits });
  expect(commandsOf("text_editor_20250728")).toEqual({ all: [...FIELDS, "insert_text"], commands: edits });
});

test("the memory tool has the commands that the SDK's helper handles", () => {
  const handled: Record<keyof MemoryToolHandlers, true> = {
    view: true,
    create: true,
    str_replace: true,
    insert: true,
    delete: true,
    rename: true,
  };
  const all = [...FIELDS, "insert_text", "old_path", "new_path"];
  expect(commandsOf("memory_20250818")).toEqual({ all, commands: Object.keys(handled) });
});

test.each(["computer_20250124", "constructor", "bash_2099"])("%s is refused", (type) => {
  expect(() => readTools([{ type, name: "n" }])).toThrow("tools.0.type: expected");
});
