import { describe, expect, test } from "bun:test";
import { toMessages } from "../../../src/server/openai/messages.ts";

const one = (fields: object) => toMessages([{ role: "user", ...fields }])[0];
const image = (bytes: number[]) => ({
  type: "image_url",
  image_url: { url: `data:image/png;base64,${Buffer.from(bytes).toString("base64")}` },
});
const text = (value: string) => ({ type: "text", text: value });

describe("content", () => {
  test("may be a string, in which a lone surrogate is replaced", () => {
    expect(one({ content: "hi" })).toEqual({ role: "user", content: "hi" });
    expect(one({ content: "" })).toEqual({ role: "user", content: "" });
    expect(one({ content: "a\ud800" })?.content).toBe("a\ufffd");
  });

  test("joins several texts with line breaks", () => {
    expect(one({ content: [text("a"), text("b")] })).toEqual({ role: "user", content: "a\nb" });
    expect(one({ content: [] })).toEqual({ role: "user", content: "" });
  });

  test("may be missing if an assistant's message has a refusal or reasoning", () => {
    const answer = { role: "assistant" };
    expect(one({ ...answer, refusal: "No." })).toEqual({ role: "assistant", content: "No." });
    expect(one({ ...answer, reasoning_content: "Hm." })).toEqual({ role: "assistant", content: "", thinking: "Hm." });
    expect(one(answer)).toEqual({ role: "assistant", content: "" });
  });

  test("may be missing beside a function_call", () => {
    const call = { name: "f", arguments: '{"a":1}' };
    expect(one({ role: "assistant", function_call: call })).toEqual({
      role: "assistant",
      content: "",
      tool_calls: [{ function: { name: "f", arguments: { a: 1 } } }],
    });
  });

  test("keeps the positions of images", () => {
    const [a, b] = [new Uint8Array([1]), new Uint8Array([2])];
    expect(one({ content: [image([1]), text("what?")] })).toMatchObject({ content: "what?", images: [a] });
    expect(one({ content: [image([1]), image([2])] })).toMatchObject({ content: "", images: [a, b] });
    expect(one({ content: [text("x"), image([1]), text("y"), image([2])] })).toMatchObject({
      content: "xy",
      images: [a, b],
      imagesAt: [1, 2],
    });
    expect(one({ content: [image([1]), text("x"), image([2])] })).toMatchObject({ content: "x", imagesAt: [0, 1] });
    expect(one({ content: [text("x"), text("y"), image([1])] })).toMatchObject({ content: "x\ny", imagesAt: [3] });
  });

  test("takes images as data URIs of five types, as a string or under url", () => {
    for (const head of ["image/png", "image/jpeg", "image/jpg", "image/webp", "image/gif", ""]) {
      const url = `data:${head};base64,AQ==`;
      for (const image_url of [url, { url, detail: "low" }]) {
        expect(one({ content: [{ type: "image_url", image_url }] })?.images).toEqual([new Uint8Array([1])]);
      }
    }
  });

  test("keeps the positions of recordings, which may be base64 or data URIs", () => {
    const file = Buffer.from("RIFF    WAVEfmt ");
    for (const head of ["", "data:audio/wav;base64,"]) {
      const input_audio = { data: head + file.toString("base64"), format: "wav" };
      expect(one({ content: [text("x"), { type: "input_audio", input_audio }] })).toEqual({
        role: "user",
        content: "x",
        images: [new Uint8Array(file)],
        imagesAt: [1],
      });
    }
  });

  test.each([
    [undefined, "invalid message content type: messages[0]: expected text or parts, got null"],
    [7, "invalid message content type: messages[0]: expected text or parts, got number"],
    [
      [{ type: "video" }],
      "invalid message format: messages[0].content[0]: expected a part of type text, image_url or input_audio",
    ],
    [[null], "invalid message format: messages[0].content[0]: expected a part of type text, image_url or input_audio"],
    [[{ type: "text", text: 1 }], "invalid message format: messages[0].content[0]: expected a text"],
    [[{ type: "input_audio" }], "messages[0].content[0].input_audio.data: expected base64 of an audio file, got none"],
    [
      [{ type: "input_audio", input_audio: { data: "AAAA", format: "wav" } }],
      "messages[0].content[0].input_audio.data: expected WAV, MP3, AAC, FLAC, Ogg, WebM or MP4 (M4A), got a file that begins with 00 00 00",
    ],
    [
      [{ type: "image_url", image_url: { url: "https://a.example/b.png" } }],
      "image URLs are not currently supported, please use base64 encoded data instead",
    ],
    [
      [text("a"), { type: "image_url", image_url: "data:text/plain;base64,AA==" }],
      "invalid image input: messages[0].content[1]: expected data:image/TYPE;base64, with a TYPE of jpeg, jpg, png, webp or gif",
    ],
    [[{ type: "image_url", image_url: "data:image/png;base64,!" }], "messages[0].content[0]: expected base64"],
  ])("%j is refused: %s", (content, message) => {
    expect(() => one({ content })).toThrow(message);
  });
});

describe("messages of other servers", () => {
  const asked = { role: "user", content: "What is this?" };
  const answer = { role: "assistant", content: "A cat." };

  test.each<[string, object]>([
    ["[input_audio left out]", { type: "input_audio", input_audio: { data: "AAAA", format: "wav" } }],
    ["[file left out]", { type: "file", file: { file_id: "f" } }],
    ["[image_url left out]", { type: "image_url", image_url: { url: "https://a.example/b.png" } }],
    ["[video_url left out]", { type: "video_url", video_url: {} }],
    ["[part left out]", {}],
    ["said", { type: "hologram", text: "said" }],
  ])("%p replaces an unreadable part of an old message, whose type is logged", (line, part) => {
    const left: string[] = [];
    const [first] = toMessages([{ role: "user", content: [text("a"), part] }, answer, asked], left);
    expect(first?.content).toBe(`a\n${line}`);
    expect(left.length).toBe(line === "said" ? 0 : 1);
    expect(toMessages([asked, answer, { role: "tool", tool_call_id: "x", content: [part] }])[2]?.content).toBe(line);
  });

  test("unreadable parts of an assistant's message are dropped without a placeholder", () => {
    const content = [{ type: "thinking", thinking: [] }, text("A cat."), { type: "hologram" }];
    expect(toMessages([asked, { role: "assistant", content }, asked])[1]?.content).toBe("A cat.");
  });

  test("an unknown part of the last message is allowed beside text, and refused alone", () => {
    const parts = (...content: object[]) => toMessages([asked, answer, { role: "user", content }])[2]?.content;
    expect(parts(text("Look:"), { type: "hologram" })).toBe("Look:\n[hologram left out]");
    const message = "messages[2].content[0]: expected a part of type text, image_url or input_audio";
    expect(() => parts({ type: "hologram" })).toThrow(message);
    expect(() => parts({ type: "hologram" }, text(" "))).toThrow(message);
    expect(() => parts(text("Hear:"), { type: "input_audio" })).toThrow(
      "input_audio.data: expected base64 of an audio file",
    );
  });

  test("content may be missing in all but the last message", () => {
    expect(toMessages([{ role: "user" }, answer, { role: "tool" }]).map(({ content }) => content)).toEqual([
      "",
      "A cat.",
      "",
    ]);
  });
});

describe("roles", () => {
  test.each([
    ["developer", "system"],
    ["System", "system"],
    ["function", "tool"],
    ["assistant", "assistant"],
    ["narrator", "narrator"],
  ])("%s is read as %s", (role, found) => {
    expect(one({ role, content: "x" })?.role).toBe(found);
  });

  test("an assistant's reasoning is read as its thinking", () => {
    for (const name of ["reasoning", "reasoning_content"]) {
      expect(one({ role: "assistant", content: "x", [name]: "hm" })).toMatchObject({ thinking: "hm" });
    }
  });
});

describe("tools", () => {
  const call = (id: string, name: string, args = "{}") => ({
    id,
    type: "function",
    function: { name, arguments: args },
  });

  test("calls have their arguments as JSON text, and need no content", () => {
    expect(one({ role: "assistant", tool_calls: [call("c1", "f", '{"a":1}'), call("c2", "g", "")] })).toEqual({
      role: "assistant",
      content: "",
      tool_calls: [
        { id: "c1", function: { name: "f", arguments: { a: 1 } } },
        { id: "c2", function: { name: "g", arguments: {} } },
      ],
    });
  });

  test.each<[unknown, object, isLeft: boolean]>([
    ['{"city":"Par', { city: "Par" }, true],
    ['{"a":1,"b', { a: 1 }, true],
    ["{", {}, true],
    ["[]", { invalid_json: "[]" }, true],
    ["7", { invalid_json: "7" }, true],
    ["get it", { invalid_json: "get it" }, true],
    ["{".repeat(3000), { invalid_json: "{".repeat(3000) }, true],
    [{ a: 1 }, { a: 1 }, false],
    [null, {}, false],
    ['{"a":1} and so on', { a: 1 }, true],
  ])("arguments %p are read as %j", (args, expected, isLeft) => {
    const left: string[] = [];
    const calls = [{ id: "c", function: { name: "f", arguments: args } }];
    const [message] = toMessages([{ role: "assistant", tool_calls: calls }], left);
    expect(message?.tool_calls).toEqual([{ id: "c", function: { name: "f", arguments: expected } }] as never);
    expect(left.length > 0).toBe(isLeft);
  });

  test("results get the name of their function from the call with their id", () => {
    const messages = toMessages([
      { role: "assistant", tool_calls: [call("c1", "f"), call("c2", "g")] },
      { role: "tool", tool_call_id: "c2", content: "two" },
      { role: "tool", tool_call_id: "c1", name: "own", content: [text("one")] },
      { role: "tool", tool_call_id: "c9", content: "who?" },
    ]);
    expect(messages.slice(1)).toEqual([
      { role: "tool", content: "two", tool_call_id: "c2", tool_name: "g" },
      { role: "tool", content: "one", tool_call_id: "c1", tool_name: "own" },
      { role: "tool", content: "who?", tool_call_id: "c9" },
    ]);
  });
});
