/** `strict` of a tool: a schema with a keyword that no grammar enforces is refused, in each dialect with that field. */
import { afterAll, beforeAll, describe, expect, test } from "bun:test";
import { makeHarness, type Harness } from "./harness.ts";

let harness: Harness;
beforeAll(async () => void (harness = await makeHarness()));
afterAll(() => harness.close());

const list = (more: object) => ({
  type: "object",
  properties: { list: { type: "array", items: { type: "string" }, ...more } },
});
const messages = [{ role: "user", content: "hi" }];

const DIALECTS: Readonly<Record<string, readonly [path: string, bodyOf: (schema: object, strict: unknown) => object]>> =
  {
    "/v1/chat/completions": [
      "tools[0].function.parameters",
      (parameters, strict) => ({
        messages,
        tools: [{ type: "function", function: { name: "f", parameters, strict } }],
      }),
    ],
    "/v1/responses": [
      "tools.0.parameters",
      (parameters, strict) => ({ input: "hi", tools: [{ type: "function", name: "f", parameters, strict }] }),
    ],
    "/v1/messages": [
      "tools.0.input_schema",
      (input_schema, strict) => ({ max_tokens: 9, messages, tools: [{ name: "f", input_schema, strict }] }),
    ],
  };

describe.each(Object.entries(DIALECTS))("%s", (path, [place, bodyOf]) => {
  const post = (schema: object, strict: unknown): Promise<Response> => {
    harness.runtime.requests.length = 0;
    return harness.post(path, { model: "m", stream: false, ...bodyOf(schema, strict) });
  };

  test("a strict tool is refused if a grammar cannot enforce its schema", async () => {
    const response = await post(list({ uniqueItems: true }), true);
    const { error } = (await response.json()) as { error: { message: string } };
    const why = "strict: a grammar cannot enforce $.list.uniqueItems: remove it, or set strict to false";
    expect([response.status, error.message]).toEqual([400, `${place}: ${why}`]);
    const several = await post({ type: "object", patternProperties: { "a+": {}, "b+": {} } }, true);
    expect(several.status).toBe(400);
  });

  test("another tool may have any schema, and strict is not part of the prompt", async () => {
    for (const [more, strict] of [
      [{ uniqueItems: true }, false],
      [{ uniqueItems: true }, null],
      [{}, true],
    ] as const) {
      expect((await post(list(more), strict)).status).toBe(200);
      const [request] = harness.runtime.requests as { tools?: unknown }[];
      expect(request?.tools).toEqual([{ type: "function", function: { name: "f", parameters: list(more) } }]);
    }
  });
});
