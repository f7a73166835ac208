import { expect, test } from "bun:test";
import { readInput } from "../../../src/server/responses/input.ts";

const message = (role: string, text: string) => ({ type: "message", role, content: [{ type: "input_text", text }] });
const call = (id: string, name: string, more: object = {}) => ({
  type: "function_call",
  call_id: id,
  name,
  arguments: '{"a":1}',
  ...more,
});
const output = (id: string, value: unknown) => ({ type: "function_call_output", call_id: id, output: value });
const ourCall = (id: string, name: string) => ({ id, function: { name, arguments: { a: 1 } } });

test("a string becomes the user's message, after the instructions", () => {
  expect(readInput({ input: "hi", instructions: "Be kind." })).toEqual([
    { role: "system", content: "Be kind." },
    { role: "user", content: "hi" },
  ]);
});

test("messages may have a type or none, any role, and parts that become lines", () => {
  const input = [
    { role: "developer", content: "a" },
    {
      role: "user",
      content: [
        { type: "input_text", text: "b" },
        { type: "input_text", text: "c" },
      ],
    },
    { type: "message", role: "assistant", id: "msg_1", content: [{ type: "output_text", text: "d", annotations: [] }] },
    message("user", "e"),
  ];
  expect(readInput({ input })).toEqual([
    { role: "system", content: "a" },
    { role: "user", content: "b\nc" },
    { role: "assistant", content: "d" },
    { role: "user", content: "e" },
  ]);
});

test("images are decoded to bytes", () => {
  const image = { type: "input_image", detail: "auto", image_url: `data:image/png;base64,${btoa("px")}` };
  expect(readInput({ input: [{ role: "user", content: [image, { type: "input_text", text: "what?" }] }] })).toEqual([
    { role: "user", content: "what?", images: [new Uint8Array(Buffer.from("px"))] },
  ]);
});

test("images of the assistant keep their position in its text, alone or with its calls", () => {
  const image = { type: "input_image", image_url: `data:image/png;base64,${btoa("px")}` };
  const said = (text: string) => ({ type: "output_text", text });
  const assistant = (...content: object[]) => ({ type: "message", role: "assistant", content });
  const images = [new Uint8Array(Buffer.from("px"))];
  const input = [assistant(said("here:"), image, said("nice?")), message("user", "yes"), assistant(image)];
  expect(readInput({ input: [...input, message("assistant", "again"), assistant(image), call("c1", "f")] })).toEqual([
    { role: "assistant", content: "here:nice?", images, imagesAt: [5] },
    { role: "user", content: "yes" },
    { role: "assistant", content: "", images },
    { role: "assistant", content: "again" },
    { role: "assistant", content: "", images, tool_calls: [ourCall("c1", "f")] },
  ]);
});

test("reasoning, text and calls of one turn become one message, and results name their tools", () => {
  const input = [
    message("user", "go"),
    { type: "reasoning", id: "rs_1", summary: [{ type: "summary_text", text: "hm" }] },
    message("assistant", "Well"),
    call("c1", "f"),
    call("c2", "find", { namespace: "crm" }),
    output("c1", "one"),
    output("c2", [{ type: "input_text", text: "two" }]),
    { type: "web_search_call", id: "ws_1", status: "completed" },
    message("assistant", "Done"),
  ];
  expect(readInput({ input })).toEqual([
    { role: "user", content: "go" },
    { role: "assistant", content: "Well", thinking: "hm", tool_calls: [ourCall("c1", "f"), ourCall("c2", "crm.find")] },
    { role: "tool", content: "one", tool_call_id: "c1", tool_name: "f" },
    { role: "tool", content: "two", tool_call_id: "c2", tool_name: "crm.find" },
    { role: "assistant", content: "Done" },
  ]);
});

test("two messages of the assistant stay two", () => {
  const input = [message("assistant", "a"), message("assistant", "b"), call("c1", "f"), message("assistant", "c")];
  expect(readInput({ input })).toEqual([
    { role: "assistant", content: "a" },
    { role: "assistant", content: "b", tool_calls: [ourCall("c1", "f")] },
    { role: "assistant", content: "c" },
  ]);
});

test.each([
  [{ encrypted_content: "e" }, "e"],
  [{ encrypted_content: "e", summary: [{ type: "summary_text", text: "s" }] }, "s"],
  [{ content: [{ type: "reasoning_text", text: "c" }], summary: [{ type: "summary_text", text: "s" }] }, "c"],
])("reasoning as %j is read as %s", (fields, thinking) => {
  const input = [{ type: "reasoning", id: "rs_1", ...fields }, call("c1", "f", { arguments: "" })];
  const calls = [{ id: "c1", function: { name: "f", arguments: {} } }];
  expect(readInput({ input })).toEqual([{ role: "assistant", content: "", thinking, tool_calls: calls }]);
});
