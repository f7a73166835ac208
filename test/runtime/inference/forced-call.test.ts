/** The effect of a tool choice on the model: the visible tools, and the schema of a call. */
import { checkSize } from "../../../src/engine/text/sampling/schema/read.ts";
import { describe, expect, test } from "bun:test";
import { forcedCallSchema, requiredTools } from "../../../src/runtime/inference/forced-call.ts";
import type { ChatRequest, Tool, ToolChoice } from "../../../src/runtime/requests/runtime.ts";
import { schemaGrammar } from "../../../src/engine/text/sampling/schema/compile.ts";
import { misfit } from "../../engine/text/sampling/validator.ts";

const KEYS = { open: "", name: "name", arguments: "arguments" };
const tool = (name: string, parameters?: unknown): Tool => ({ type: "function", function: { name, parameters } });
const f = tool("f", { type: "object", properties: { x: { type: "integer" } }, required: ["x"] });
const g = tool("g");

const request = (tools: readonly Tool[], toolChoice?: ToolChoice): ChatRequest => ({
  model: "m",
  messages: [],
  options: {},
  signal: new AbortController().signal,
  tools,
  ...(toolChoice ? { toolChoice } : {}),
});

describe("the tools of tool_choice", () => {
  test("are undefined for auto and none, all for required, and one for a name", () => {
    for (const choice of [undefined, "auto", "none"] as const) {
      expect(requiredTools(request([f, g], choice))).toBeUndefined();
    }
    expect(requiredTools(request([f, g], "required"))).toEqual([f, g]);
    expect(requiredTools(request([f, g], { name: "g" }))).toEqual([g]);
  });

  test("must be among the offered tools", () => {
    expect(() => requiredTools(request([], "required"))).toThrow(
      "tool_choice: expected tools to choose from, got none",
    );
    expect(() => requiredTools(request([f, g], { name: "h" }))).toThrow(
      "tool_choice: expected one of the tools 'f', 'g', got 'h'",
    );
  });
});

/** True if a call fits, and the grammar can be made. */
const fits = (tools: readonly Tool[], name: string, args: unknown): boolean => {
  const schema = forcedCallSchema(tools, KEYS);
  expect(schemaGrammar(schema).closes).toBe(true);
  return misfit({ name, arguments: args }, schema) === undefined;
};

describe("the schema of a call", () => {
  test("ties each tool's name to its own arguments", () => {
    expect([fits([f, g], "f", { x: 1 }), fits([f, g], "f", {}), fits([f, g], "g", {})]).toEqual([true, false, true]);
    expect([fits([f, g], "h", {}), fits([f, g], "f", { x: "1" })]).toEqual([false, false]);
  });

  test("uses the format's keys for name and arguments", () => {
    const schema = forcedCallSchema([g], { open: "", name: "tool_name", arguments: "parameters" });
    expect(misfit({ tool_name: "g", parameters: {} }, schema)).toBeUndefined();
  });

  test("allows no arguments for a tool that declares no parameters", () => {
    for (const parameters of [undefined, {}, { type: "object" }, { type: "object", properties: {} }]) {
      const tools = [tool("t", parameters)];
      expect([fits(tools, "t", {}), fits(tools, "t", { x: 1 })]).toEqual([true, false]);
    }
    expect(fits([tool("t", { type: "object", additionalProperties: { type: "integer" } })], "t", { x: 1 })).toBe(true);
  });

  test("resolves references within the tool's own parameters, whatever its name", () => {
    const parameters = {
      type: "object",
      $defs: { n: { type: "integer" } },
      properties: { $ref: { $ref: "#/$defs/n" }, enum: { type: "string", enum: ["$ref"] }, self: { $ref: "#" } },
      required: ["$ref"],
    };
    for (const name of ["t", "a/b~c %"]) {
      const tools = [f, tool(name, parameters)];
      expect(fits(tools, name, { $ref: 1, enum: "$ref", self: { $ref: 2 } })).toBe(true);
      expect(fits(tools, name, { $ref: "1" })).toBe(false);
    }
    const { $defs } = forcedCallSchema([tool("t", { type: "object", default: { $ref: "#/x" }, properties: {} })], KEYS);
    expect($defs).toMatchObject({ t: { default: { $ref: "#/x" } } });
  });

  test("keeps parameters that are a reference an object", () => {
    const parameters = { $ref: "#/$defs/p", $defs: { p: { type: "object", properties: { x: { type: "null" } } } } };
    expect([fits([tool("t", parameters)], "t", { x: null }), fits([tool("t", parameters)], "t", 3)]).toEqual([
      true,
      false,
    ]);
  });

  test("is an error that names the tool if its parameters are no schema of an object", () => {
    expect(() => forcedCallSchema([tool("t", { type: "string" })], KEYS)).toThrow(
      `tools: 't': parameters: expected type "object", got "string"`,
    );
    expect(() => forcedCallSchema([tool("t", 3)], KEYS)).toThrow(
      "tools: 't': parameters: expected a JSON schema, got number",
    );
    expect(() => forcedCallSchema([tool("")], KEYS)).toThrow("tools: expected a name for every tool");
    let deep: unknown = {};
    for (let i = 0; i < 10_000; i++) deep = { type: "object", properties: { x: deep } };
    expect(() => forcedCallSchema([tool("t", deep)], KEYS)).toThrow(
      "tools: 't': parameters: $.properties.x.properties.x",
    );
    expect(() => forcedCallSchema([tool("t", deep)], KEYS)).toThrow("nested deeper than 64 schemas");
    let sound: unknown = { type: "object" };
    for (let i = 1; i < 64; i++) sound = { type: "object", properties: { x: sound } };
    expect(() => checkSize(forcedCallSchema([tool("t", sound)], KEYS))).not.toThrow();
  });
});
