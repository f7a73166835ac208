/** Every field of every body, with values of every other type: refused as the fault of the request, never a failure. */
import { afterAll, beforeAll, describe, expect, setDefaultTimeout, test } from "bun:test";
import type { TSchema } from "elysia";
import { MessagesBody } from "../../src/server/schema/messages.ts";
import { ChatBody } from "../../src/server/schema/chat.ts";
import { CopyBody, DeleteBody } from "../../src/server/routes/names.ts";
import { CreateBody } from "../../src/server/schema/create.ts";
import { EmbedBody, EmbeddingsBody } from "../../src/server/routes/embed.ts";
import { GenerateBody } from "../../src/server/schema/generate.ts";
import { PartsBody } from "../../src/server/routes/parts.ts";
import { RerankBody } from "../../src/server/routes/rerank.ts";
import { ResponsesBody } from "../../src/server/schema/responses.ts";
import { ShowBody } from "../../src/server/routes/show.ts";
import { DetokenizeBody, TokenizeBody } from "../../src/server/routes/tokenize.ts";
import { PullBody, PushBody } from "../../src/server/routes/transfer.ts";
import { ChatCompletionBody } from "../../src/server/openai/chat.ts";
import { CompletionBody } from "../../src/server/openai/completion.ts";
import { EmbeddingBody } from "../../src/server/openai/embedding.ts";
import { makeHarness, type Harness } from "./harness.ts";

setDefaultTimeout(60_000);

let harness: Harness;
beforeAll(async () => void (harness = await makeHarness()));
afterAll(async () => {
  expect(harness.logs.filter((line) => line["msg"] === "bug")).toEqual([]);
  await harness.close();
});

const messages = [{ role: "user", content: "hi" }];
const ROUTES: [path: string, schema: TSchema, sound: object, method?: string][] = [
  ["/api/generate", GenerateBody, { model: "m", prompt: "hi" }],
  ["/api/chat", ChatBody, { model: "m", messages }],
  ["/api/embed", EmbedBody, { model: "m", input: "hi" }],
  ["/api/embeddings", EmbeddingsBody, { model: "m", prompt: "hi" }],
  ["/api/rerank", RerankBody, { model: "m", query: "hi", documents: ["a"] }],
  ["/api/show", ShowBody, { model: "m" }],
  ["/api/create", CreateBody, { model: "n", from: "m" }],
  ["/api/copy", CopyBody, { source: "m", destination: "o" }],
  ["/api/delete", DeleteBody, { model: "missing" }, "DELETE"],
  ["/api/pull", PullBody, { model: "127.0.0.1:1/x/y", stream: false }],
  ["/api/push", PushBody, { model: "127.0.0.1:1/x/y", stream: false }],
  ["/api/parts", PartsBody, { model: "m" }],
  ["/api/tokenize", TokenizeBody, { model: "m", content: "hi" }],
  ["/api/detokenize", DetokenizeBody, { model: "m", tokens: [1] }],
  ["/v1/chat/completions", ChatCompletionBody, { model: "m", messages }],
  ["/v1/completions", CompletionBody, { model: "m", prompt: "hi" }],
  ["/v1/embeddings", EmbeddingBody, { model: "m", input: "hi" }],
  ["/v1/responses", ResponsesBody, { model: "m", input: "hi" }],
  ["/v1/messages", MessagesBody, { model: "m", max_tokens: 5, messages }],
];

const VALUES: readonly unknown[] = [
  true,
  "x",
  "5",
  5,
  1.5,
  -1,
  1e300,
  [],
  [1],
  ["x"],
  [[]],
  [null],
  {},
  { a: 1 },
  { type: 7 },
];

/** Types of a value in the schema language; an integer is a number too. */
function kindsOf(value: unknown): string[] {
  if (Array.isArray(value)) return ["array"];
  if (typeof value === "number")
    return Number.isInteger(value) && Math.abs(value) < 2 ** 63 ? ["integer", "number"] : ["number"];
  return [typeof value];
}

/** Every place of a schema, with a body that has a value there. */
function* places(schema: TSchema, put: (value: unknown) => unknown, path: string): Generator<Place> {
  for (const [name, field] of Object.entries((schema["properties"] ?? {}) as Record<string, TSchema>)) {
    const at = (value: unknown): unknown => put({ [name]: value });
    const orText = field["orText"] === true;
    yield { path: `${path}.${name}`, type: field["type"] as string | undefined, orText, put: at };
    if (field["type"] === "object") yield* places(field, at, `${path}.${name}`);
    if (field["type"] !== "array") continue;
    const items = field["items"] as TSchema;
    const inItem = (value: unknown): unknown => at([value]);
    yield { path: `${path}.${name}[]`, type: items["type"] as string | undefined, put: inItem };
    yield* places(items, inItem, `${path}.${name}[]`);
  }
}

interface Place {
  readonly path: string;
  /** Undefined: the route decides. */
  readonly type: string | undefined;
  /** True if a JSON text is valid too. */
  readonly orText?: boolean;
  readonly put: (value: unknown) => unknown;
}

const REFUSED = [400, 404];

describe.each(ROUTES)("%s", (path, schema, sound, method = "POST") => {
  test("refuses values of other types", async () => {
    for (const place of places(schema, (value) => value, "")) {
      for (const value of VALUES) {
        const body = { ...sound, ...(place.put(value) as object) };
        const response = await harness.call(method, path, body);
        const text = await response.text();
        const seen = [place.path, JSON.stringify(value), response.status, text.slice(0, 200)];
        const kinds = kindsOf(value);
        const isText = place.orText === true && kinds.includes("string");
        const isOfType = place.type === undefined || kinds.includes(place.type) || isText;
        const isTransfer = /pull|push|create/.test(path) && response.status === 500; // the registry is unreachable
        if (isOfType) expect([seen, isTransfer || [200, ...REFUSED].includes(response.status)]).toEqual([seen, true]);
        else expect([seen, response.status]).toEqual([seen, 400]);
      }
    }
  });
});
