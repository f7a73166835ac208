/** Grammars of requests, under the names of other servers, in every API. */
import { afterAll, beforeAll, expect, setDefaultTimeout, test } from "bun:test";
import { startHearth, type Hearth } from "./hearth.ts";

setDefaultTimeout(120_000);

let hearth: Hearth;
beforeAll(async () => void (hearth = await startHearth()));
afterAll(() => hearth.stop());

const model = "hearth";
const messages = [{ role: "user", content: "Hello" }];
const GBNF = 'root ::= "The " word "."\nword ::= [a-z]{3,5}';
const FIELDS: readonly (readonly [fields: object, fits: RegExp])[] = [
  [{ grammar: GBNF }, /^The [a-z]{3,5}\.$/],
  [{ guided_grammar: GBNF }, /^The [a-z]{3,5}\.$/],
  [{ structured_outputs: { grammar: GBNF } }, /^The [a-z]{3,5}\.$/],
  [{ regex: "[A-Z]{2}-[0-9]{3}" }, /^[A-Z]{2}-[0-9]{3}$/],
  [{ guided_regex: "(ab){2,3}" }, /^(ab){2,3}$/],
  [{ structured_outputs: { regex: "x|yy" } }, /^(x|yy)$/],
  [{ choice: ["left", "right"] }, /^(left|right)$/],
  [{ guided_choice: ["up"] }, /^up$/],
  [{ structured_outputs: { choice: ["1", "22"] } }, /^(1|22)$/],
  [{ guided_json: { const: { a: 1 } } }, /^\{"a":1\}$/],
  [{ json_schema: { enum: [7] } }, /^7$/],
];

async function said(path: string, body: object, read: (reply: any) => string): Promise<string> {
  const response = await hearth.post(path, { model, ...body });
  const reply = await response.json();
  expect([response.status, reply]).toEqual([200, reply]);
  return read(reply);
}

const APIS: Record<string, (fields: object) => Promise<string>> = {
  chat: (fields) => said("/api/chat", { messages, stream: false, ...fields }, (reply) => reply.message.content),
  generate: (fields) => said("/api/generate", { prompt: "Hello", stream: false, ...fields }, (reply) => reply.response),
  "chat completions": (fields) =>
    said("/v1/chat/completions", { messages, ...fields }, (reply) => reply.choices[0].message.content),
  completions: (fields) => said("/v1/completions", { prompt: "Hello", ...fields }, (reply) => reply.choices[0].text),
  messages: (fields) => said("/v1/messages", { messages, max_tokens: 99, ...fields }, (reply) => reply.content[0].text),
  responses: (fields) =>
    said("/v1/responses", { input: "Hello", ...fields }, (reply) => reply.output[0].content[0].text),
};

test.each(Object.keys(APIS))("%s: every form of grammar limits the answer", async (api) => {
  for (const [fields, fits] of FIELDS)
    expect([fields, await APIS[api]!(fields)]).toEqual([fields, expect.stringMatching(fits)]);
});

test.each([
  [{ grammar: "root ::= x" }, "grammar: line 1, column 10: expected the name of a rule that the grammar has, got 'x'"],
  [{ regex: "(a" }, "regex: '(a': unclosed group"],
  [{ choice: [] }, "choice: expected texts, got none"],
  [{ regex: "a", choice: ["b"] }, "regex: expected one grammar, got choice too"],
  [{ regex: "a", format: "json" }, "regex: expected one grammar, got a format too"],
  [
    { regex: "a", tools: [{ type: "function", function: { name: "f" } }] },
    "regex: expected no tools together with it: a grammar describes the whole answer",
  ],
  [{ structured_outputs: { choice: "a" } }, "structured_outputs.choice: expected an array of texts, got string"],
])("%p is refused with 400", async (fields, error) => {
  const response = await hearth.post("/api/chat", { model, messages, stream: false, ...fields });
  expect([response.status, await response.json()]).toEqual([400, { error }]);
});

test("with ignore_eos, only the token limit ends an answer", async () => {
  const body = { model, messages, max_tokens: 60, temperature: 0 };
  const reasonOf = async (fields: object): Promise<string> => {
    const response = await hearth.post("/v1/chat/completions", { ...body, ...fields });
    return ((await response.json()) as any).choices[0].finish_reason;
  };
  expect([await reasonOf({}), await reasonOf({ ignore_eos: true })]).toEqual(["stop", "length"]);
});
