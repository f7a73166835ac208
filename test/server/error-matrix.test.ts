/** The answer of every endpoint to a bad body and to a bad, missing or unknown model: one table of all routes. */
import { afterAll, beforeAll, describe, expect, test } from "bun:test";
import { makeHarness, type Harness } from "./harness.ts";

let harness: Harness;
beforeAll(async () => void (harness = await makeHarness()));
afterAll(() => harness.close());

type Failure = readonly [status: number, error: string];

interface Row {
  /** The route's other required fields. */
  readonly rest: object;
  /** For no model, an empty one, and one of blanks if that differs. */
  readonly missing: Failure;
  readonly blank?: Failure;
  readonly invalid: Failure;
  /** undefined: it would contact another server */
  readonly absent: Failure | undefined;
}

const REQUIRED: Failure = [400, "model is required"];
const INVALID: Failure = [400, "invalid model name"];
const ABSENT: Failure = [404, "model 'nope' not found"];
const USUAL = { missing: REQUIRED, invalid: INVALID, absent: ABSENT };
const messages = [{ role: "user", content: "x" }];

const MODEL_ROUTES: Readonly<Record<string, Row>> = {
  "POST /api/generate": {
    rest: { prompt: "x" },
    ...USUAL,
    missing: [404, "model '' not found"],
    blank: [404, "model '  ' not found"],
  },
  "POST /api/chat": { rest: { messages }, ...USUAL },
  "POST /api/embed": {
    rest: { input: "x" },
    missing: [404, "model '' not found"],
    invalid: INVALID,
    absent: [404, 'model "nope" not found, try pulling it first'],
  },
  "POST /api/embeddings": {
    rest: { prompt: "x" },
    ...USUAL,
    absent: [404, 'model "nope" not found, try pulling it first'],
  },
  "POST /api/tokenize": { rest: { content: "x" }, ...USUAL },
  "POST /api/detokenize": { rest: { tokens: [1] }, ...USUAL },
  "POST /api/show": { rest: {}, ...USUAL, absent: [404, "model 'nope:latest' not found"] },
  "POST /api/count": { rest: { messages }, ...USUAL },
  "POST /api/parts": { rest: {}, ...USUAL },
  "DELETE /api/delete": { rest: {}, ...USUAL, invalid: [400, 'name "a b" is invalid'] },
  "POST /api/create": {
    rest: { from: "m", stream: false },
    missing: INVALID,
    invalid: INVALID,
    absent: undefined,
  },
  "POST /api/pull": { rest: {}, missing: INVALID, invalid: INVALID, absent: undefined },
  "POST /api/push": {
    rest: { stream: false },
    ...USUAL,
    absent: [404, "model 'nope:latest' not found"],
  },
  "POST /v1/chat/completions": { rest: { messages }, ...USUAL },
  "POST /v1/completions": { rest: { prompt: "x" }, ...USUAL },
  "POST /v1/embeddings": { rest: { input: "x" }, ...USUAL },
  "POST /api/rerank": { rest: { query: "x", documents: ["x"] }, ...USUAL },
  "POST /v1/rerank": { rest: { query: "x", documents: ["x"] }, ...USUAL },
  "POST /v1/reranking": { rest: { query: "x", documents: ["x"] }, ...USUAL },
  "POST /v1/responses": { rest: { input: "x" }, ...USUAL },
  "POST /v1/responses/input_tokens": { rest: { input: "x" }, ...USUAL },
  "POST /v1/messages": { rest: { messages, max_tokens: 3 }, ...USUAL },
  "POST /v1/messages/count_tokens": { rest: { messages }, ...USUAL },
};

/** Routes without a model in their body; other tests cover their bad input. */
const OTHER_ROUTES = [
  "GET /api/status",
  "POST /api/me",
  "POST /api/signout",
  "DELETE /api/user/keys/:key",
  "GET /api/experimental/model-recommendations",
  "POST /api/experimental/web_search",
  "POST /api/experimental/web_fetch",
  "GET /api/system",
  "GET /api/requests",
  "GET /api/catalogue",
  "GET /api/mcp",
  "POST /api/mcp/call",
  "GET /api/version",
  "GET /api/tags",
  "GET /api/ps",
  "POST /api/copy",
  "HEAD /api/blobs/:digest",
  "GET /api/blobs/:digest",
  "POST /api/blobs/:digest",
  "GET /v1/models",
  "GET /v1/health",
  "GET /v1/responses/:id",
  "DELETE /v1/responses/:id",
  "GET /v1/responses/:id/input_items",
  "POST /v1/responses/:id/cancel",
  "GET /v1/models/*",
  "POST /v1/audio/transcriptions",
  "POST /v1/audio/translations",
];

/** Status and message, in any API's format. */
async function failure(route: string, body: object | string | undefined): Promise<Failure> {
  const [method = "", path = ""] = route.split(" ");
  const response = await harness.call(method, path, body);
  expect(response.headers.get("content-type")).toBe("application/json; charset=utf-8");
  const { error } = (await response.json()) as { error: string | { message: string } };
  return [response.status, typeof error === "string" ? error : error.message];
}

/** The error has the API's format. */
function shapeOf(path: string): object {
  if (path.startsWith("/v1/messages")) return { type: "error", error: { type: "not_found_error" } };
  return path.startsWith("/v1/") ? { error: { type: "not_found_error", param: null, code: null } } : {};
}

test("every route under /api and /v1 is in the table", () => {
  const apis = harness.app.routes.filter(({ path }) => /^\/(api|v1)\//.test(path));
  const routes = apis.map(({ method, path }) => `${method} ${path}`);
  expect(routes.sort()).toEqual([...Object.keys(MODEL_ROUTES), ...OTHER_ROUTES].sort());
});

describe.each(Object.entries(MODEL_ROUTES))("%s", (route, { rest, missing, blank = missing, invalid, absent }) => {
  const ask = (model: unknown) => failure(route, { ...rest, model });

  test("a missing or blank body: 400", async () => {
    for (const body of [undefined, " \n"]) expect(await failure(route, body)).toEqual([400, "missing request body"]);
  });

  test("a body that is not JSON, is cut off or is not an object: 400", async () => {
    expect(await failure(route, "x")).toEqual([400, "request body: expected JSON: Unexpected identifier"]);
    expect(await failure(route, '{"model":')).toEqual([400, "request body: expected JSON: Unexpected EOF"]);
    expect(await failure(route, "[]")).toEqual([400, "request body: expected an object, got an array"]);
  });

  test("a model that is not a string: 400", async () => {
    expect(await ask(7)).toEqual([400, "model: expected a string, got 7"]);
    expect(await ask({})).toEqual([400, "model: expected a string, got an object"]);
  });

  test(`a missing model: ${missing.join(" ")}`, async () => {
    for (const model of [undefined, null, ""]) expect([model, await ask(model)]).toEqual([model, missing]);
    expect(await ask("  ")).toEqual(blank);
  });

  test(`an invalid name: ${invalid.join(" ")}`, async () => {
    expect(await ask("a b")).toEqual(invalid);
    for (const model of ["../m", "m:", "/m", "a/b/c/d/m", "m@sha256:00", "m".repeat(81), "ü", "m\0", "..", "-m"]) {
      expect([model, await ask(model)]).toEqual([
        model,
        [400, invalid[1].replace("a b", model.replace("\0", "\\u0000"))],
      ]);
    }
  });

  if (absent)
    test(`a missing model: ${absent.join(" ")}`, async () => {
      expect(await ask("nope")).toEqual(absent);
      const [method = "", path = ""] = route.split(" ");
      expect(await (await harness.call(method, path, { ...rest, model: "nope" })).json()).toMatchObject(shapeOf(path));
    });

  test("another method: 405, with the allowed methods", async () => {
    const [, path = ""] = route.split(" ");
    const response = await harness.call("PATCH", path);
    const text = await response.text();
    expect(response.status).toBe(405);
    if (path.startsWith("/v1")) expect(JSON.parse(text)).toMatchObject(shapeOf(path));
    else expect(text).toBe("405 method not allowed");
    expect(response.headers.get("allow")).toBe(route.split(" ")[0]!);
  });
});

describe("GET /v1/models/*", () => {
  test.each<[string, number, string]>([
    ["nope", 404, "model 'nope' not found"],
    ["a%20b", 400, "invalid model name"],
    ["..%2F..%2Fm", 400, "invalid model name"],
    ["%ff", 400, "model: expected a name in URL encoding"],
  ])("%s: %d %s", async (name, status, error) => {
    expect(await failure(`GET /v1/models/${name}`, undefined)).toEqual([status, error]);
  });
});
