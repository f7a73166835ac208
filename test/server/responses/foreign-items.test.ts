/** Histories of the Responses API with items of other servers. */
import { expect, test } from "bun:test";
import { readInput } from "../../../src/server/responses/input.ts";

const user = { role: "user", content: "go on" };
const said = { role: "user", content: "go on" };

/** The messages read from a history with these items, between two messages of the user. */
function read(...items: object[]) {
  const left: string[] = [];
  const messages = readInput({ input: [user, ...items, user] }, { left });
  expect([messages[0], messages.at(-1)]).toEqual([said, said]);
  return { messages: messages.slice(1, -1), left };
}

const called = (name: string, args: object, id?: string) => ({
  role: "assistant",
  content: "",
  tool_calls: [{ ...(id ? { id } : {}), function: { name, arguments: args } }],
});
/** The text `4` between the markers of outside text. */
const OUTSIDE_4 = /^What stands between <<<[^]*>>>4<<<END_/;

const toolResult = (content: string, id: string, name?: string) => ({
  role: "tool",
  content,
  tool_call_id: id,
  ...(name ? { tool_name: name } : {}),
});

test.each<[string, object[], object[]]>([
  [
    "a local shell",
    [
      {
        type: "local_shell_call",
        call_id: "c",
        id: "i",
        action: { type: "exec", command: ["ls"] },
        status: "completed",
      },
      { type: "local_shell_call_output", call_id: "c", output: '{"output":"a.txt"}' },
    ],
    [
      called("local_shell", { type: "exec", command: ["ls"] }, "c"),
      toolResult('{"output":"a.txt"}', "c", "local_shell"),
    ],
  ],
  [
    "a shell",
    [
      { type: "shell_call", call_id: "c", action: { commands: ["ls"] }, status: "completed" },
      {
        type: "shell_call_output",
        call_id: "c",
        output: [{ stdout: "a\n", stderr: "", outcome: { type: "exit", exit_code: 0 } }],
      },
    ],
    [
      called("shell", { commands: ["ls"] }, "c"),
      toolResult('{"stdout":"a\\n","stderr":"","outcome":{"type":"exit","exit_code":0}}', "c", "shell"),
    ],
  ],
  [
    "a patch",
    [
      { type: "apply_patch_call", call_id: "c", operation: { type: "delete_file", path: "a" }, status: "completed" },
      { type: "apply_patch_call_output", call_id: "c", status: "completed" },
    ],
    [called("apply_patch", { type: "delete_file", path: "a" }, "c"), toolResult("completed", "c", "apply_patch")],
  ],
  [
    "a search of files",
    [
      {
        type: "file_search_call",
        id: "fs",
        queries: ["q"],
        status: "completed",
        results: [{ filename: "a", text: "found" }],
      },
    ],
    [called("file_search", { queries: ["q"] }, "fs"), toolResult("found", "fs", "file_search")],
  ],
  [
    "a code interpreter",
    [
      {
        type: "code_interpreter_call",
        id: "ci",
        code: "print(1)",
        container_id: "k",
        outputs: [{ type: "logs", logs: "1" }],
      },
    ],
    [
      called("code_interpreter", { code: "print(1)", container_id: "k" }, "ci"),
      toolResult("1", "ci", "code_interpreter"),
    ],
  ],
  [
    "a server of MCP",
    [
      { type: "mcp_list_tools", id: "l", server_label: "s", tools: [] },
      { type: "mcp_call", id: "m", server_label: "s", name: "roll", arguments: '{"n":2}', output: "4", error: null },
    ],
    [called("s__roll", { n: 2 }, "m"), toolResult(expect.stringMatching(OUTSIDE_4), "m", "s__roll")],
  ],
  [
    "a screen",
    [
      { type: "computer_call", call_id: "c", action: { type: "screenshot" }, pending_safety_checks: [] },
      {
        type: "computer_call_output",
        call_id: "c",
        output: { type: "computer_screenshot", image_url: "data:image/png;base64,AQ==" },
      },
    ],
    [
      called("computer", { type: "screenshot" }, "c"),
      { ...toolResult("", "c", "computer"), images: [new Uint8Array([1])] },
    ],
  ],
  [
    "an image in a result that is elsewhere",
    [
      { type: "function_call", call_id: "c", name: "f", arguments: '{"a":"b' },
      {
        type: "function_call_output",
        call_id: "c",
        output: [{ type: "input_image", image_url: "https://a.example/b" }, { type: "new" }],
      },
    ],
    [called("f", { a: "b" }, "c"), toolResult("[input_image left out]\n[new left out]", "c", "f")],
  ],
])("%s becomes calls and results", (_, items, expected) => {
  expect(read(...items).messages).toEqual(expected as never);
});

test.each([
  "image_generation_call",
  "mcp_approval_request",
  "mcp_approval_response",
  "tool_search_call",
  "tool_search_output",
  "compaction",
  "hologram",
])("%s is left out and logged", (type) => {
  const item = { type, id: "x", call_id: "c", encrypted_content: "gAAAA", result: "AAAA", status: "completed" };
  expect(read(item)).toEqual({ messages: [], left: [type] });
});

test("reasoning that another server encrypted is dropped", () => {
  const reasoning = { type: "reasoning", id: "rs", summary: [], encrypted_content: `gAAAAABo${"x-_9".repeat(100)}` };
  expect(read(reasoning, { role: "assistant", content: "Hi" }).messages).toEqual([
    { role: "assistant", content: "Hi" },
  ]);
});

test("an old message may have an unknown role or part", () => {
  const content = [
    { type: "input_text", text: "Look:" },
    { type: "input_file", file_id: "f" },
  ];
  expect(read({ role: "critic", content }, { role: "assistant", content: null }).messages).toEqual([
    { role: "user", content: "Look:\n[input_file left out]" },
    { role: "assistant", content: "" },
  ]);
});

test.each<[unknown[], string]>([
  [[{ type: "hologram" }], 'input.0: unknown input item type: "hologram"'],
  [[user, { role: "assistant", content: "Hi" }, { type: "hologram" }], 'input.2: unknown input item type: "hologram"'],
  [[{ role: "user", content: [{ type: "hologram" }] }], 'input.0.content.0.type: expected "input_text"'],
  [[user, { role: "assistant", content: "Hi" }, { role: "critic", content: "x" }], 'input.2.role: expected "user"'],
])("an unknown type or role in the newest items is refused: %j", (input, message) => {
  expect(() => readInput({ input })).toThrow(message);
});

test("binary data in a result becomes a placeholder", () => {
  const items = [
    {
      type: "code_interpreter_call",
      id: "c",
      code: "plot()",
      outputs: [{ type: "image", url: `data:${"A".repeat(5000)}` }],
    },
  ];
  expect(read(...items).messages[1]?.content).toBe('{"type":"image","url":"[data left out]"}');
});
