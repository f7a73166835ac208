import { afterAll, beforeAll, describe, expect, test } from "bun:test";
import { AppError, type Code } from "../../src/base/errors.ts";
import { anthropicErrorBody, errorBodyFor, openaiErrorBody } from "../../src/server/http/errors.ts";
import { makeHarness, type Harness } from "./harness.ts";

const bodyFor = (path: string, headers: Record<string, string> = {}): object =>
  errorBodyFor(new Request(`http://localhost${path}`, { headers }))(new AppError("not_found", "gone"), "req_1");

describe("the body of an error", () => {
  test("has the shape of the API of the route", () => {
    const openai = { error: { message: "gone", type: "not_found_error", param: null, code: null } };
    const anthropic = { type: "error", error: { type: "not_found_error", message: "gone" }, request_id: "req_1" };
    expect(bodyFor("/api/chat")).toEqual({ error: "gone" });
    expect(bodyFor("/v10")).toEqual({ error: "gone" });
    expect(bodyFor("/v1/chat/completions")).toEqual(openai);
    expect(bodyFor("/v1/messages")).toMatchObject(anthropic);
    expect(bodyFor("/v1/messages/count_tokens")).toMatchObject(anthropic);
    expect(bodyFor("/v1/models", { "anthropic-version": "2023-06-01" })).toMatchObject(anthropic);
  });

  test.each([
    ["bad_request", "invalid_request_error", "invalid_request_error"],
    ["unauthorized", "invalid_request_error", "authentication_error"],
    ["forbidden", "api_error", "permission_error"],
    ["not_found", "not_found_error", "not_found_error"],
    ["too_large", "invalid_request_error", "request_too_large"],
    ["busy", "api_error", "overloaded_error"],
    ["runner", "api_error", "api_error"],
  ] as [Code, string, string][])("has the type for %s: %s, %s", (code, openai, anthropic) => {
    const error = new AppError(code, "x");
    expect([openaiErrorBody(error).error.type, anthropicErrorBody(error, "req_1").error.type]).toEqual([
      openai,
      anthropic,
    ]);
  });
});

describe("a missing key", () => {
  let harness: Harness;
  beforeAll(async () => void (harness = await makeHarness({ apiKeys: ["alpha"] })));
  afterAll(() => harness.close());

  test("is reported in the shape of each API", async () => {
    const body = async (path: string): Promise<unknown> => {
      const response = await harness.post(path, "{}");
      expect([response.status, response.headers.get("www-authenticate")]).toEqual([401, "Bearer"]);
      return response.json();
    };
    expect(await body("/api/chat")).toEqual({ error: "unauthorized" });
    expect(await body("/v1/chat/completions")).toEqual({
      error: { message: "unauthorized", type: "invalid_request_error", param: null, code: "invalid_api_key" },
    });
    expect(await body("/v1/messages")).toMatchObject({ type: "error", error: { type: "authentication_error" } });
  });
});
