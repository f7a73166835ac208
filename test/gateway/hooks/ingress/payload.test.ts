import { describe, expect, test } from "bun:test";
import { parsePayload, readPayload } from "../../../../src/gateway/hooks/ingress/payload.ts";
import { Refusal } from "../../../../src/gateway/hooks/ingress/problems.ts";

const JSON_TYPE = "application/json";
const FORM = "application/x-www-form-urlencoded";

function parse(body: string | Uint8Array, contentType: string | null, more = {}): unknown {
  const bytes = typeof body === "string" ? new TextEncoder().encode(body) : body;
  return parsePayload(bytes, { contentType, isMapped: true, isStrict: false, ...more });
}

function problemOf(work: () => unknown): string {
  try {
    work();
  } catch (error) {
    if (error instanceof Refusal) return error.problem;
    throw error;
  }
  return "none";
}

describe("a body", () => {
  test.each([
    ["JSON", '{"a":1}', JSON_TYPE, { a: 1 }],
    ["JSON with a charset", '{"a":"ü"}', "application/json; charset=utf-8", { a: "ü" }],
    ["JSON of a vendor", '{"a":1}', "application/vnd.github+json", { a: 1 }],
    ["JSON without a content type", '{"a":1}', null, { a: 1 }],
    ["JSON that says it is something else", '{"a":1}', "application/octet-stream", { a: 1 }],
    ["JSON as curl sends it", '{"a":1}', FORM, { a: 1 }],
    ["JSON as text", ' {"a":1}', "text/plain", { a: 1 }],
    ["JSON behind a byte order mark", '\ufeff{"a":1}', JSON_TYPE, { a: 1 }],
    ["nothing", "", null, {}],
    ["blanks", " \r\n", JSON_TYPE, {}],
    ["a repeated key, the last of which counts", '{"a":1,"a":2}', JSON_TYPE, { a: 2 }],
    ["text", "disk full", "text/plain; charset=utf-8", "disk full"],
    ["text that only begins like JSON", "[warn] disk full", "text/plain", "[warn] disk full"],
    ["a form", "a=1&b=x+y%21&a=2", FORM, { a: ["1", "2"], b: "x y!" }],
    ["a form around JSON", `payload=${encodeURIComponent('{"a":[1]}')}`, FORM, { a: [1] }],
    ["a form with a payload that is not JSON", "payload=hello&x=1", FORM, { payload: "hello", x: "1" }],
    ["lines of JSON", '{"a":1}\r\n\n[2]\n', "application/x-ndjson", [{ a: 1 }, [2]]],
    ["a sequence of JSON", '\x1e{"a":1}\n\x1e2\n', "application/json-seq", [{ a: 1 }, 2]],
  ])("with %s is parsed", (_, body, contentType, expected) => {
    expect(parse(body, contentType)).toEqual(expected);
  });

  test.each([
    ["Latin-1 that says so", Uint8Array.of(0x61, 0x3d, 0xe9), `${FORM}; charset=ISO-8859-1`, { a: "é" }],
    ["JSON in Latin-1", Buffer.from('{"a":"\u00e9"}', "latin1"), `${JSON_TYPE};charset="latin1"`, { a: "é" }],
    ["UTF-8 that says it is Latin-1", '{"a":"é"}', `${JSON_TYPE}; charset=iso-8859-1`, { a: "é" }],
    ["UTF-8 of an unknown charset", '{"a":"é"}', `${JSON_TYPE}; charset=klingon`, { a: "é" }],
    ["UTF-16", Buffer.from('\ufeff{"a":"é"}', "utf16le"), `${JSON_TYPE}; charset=UTF-16`, { a: "é" }],
  ])("in %s is read", (_, body, contentType, expected) => expect(parse(body, contentType)).toEqual(expected));

  test("in an unknown charset that is not UTF-8 is refused", () => {
    for (const charset of ["klingon", "utf-8"]) {
      const body = Uint8Array.of(0x22, 0xe9, 0x22);
      expect(problemOf(() => parse(body, `${JSON_TYPE}; charset=${charset}`))).toBe("invalid_utf8");
    }
  });

  test.each([
    ["an id beyond 2^53", '{"id":9007199254740993}', { id: "9007199254740993" }],
    ["a negative integer beyond 2^53", "[-12345678901234567890]", ["-12345678901234567890"]],
    ["a number beyond the range of doubles", '{"a":{"b":1e400}}', { a: { b: "1e400" } }],
    ["the largest safe integer", "[9007199254740991, 1.5, 1e21]", [9_007_199_254_740_991, 1.5, 1e21]],
    ["a long fraction", "[0.12345678901234567890]", JSON.parse("[0.12345678901234567890]")],
    ["long digits in a text", '{"a":"9007199254740993","b":1}', { a: "9007199254740993", b: 1 }],
    [
      "names that objects have anyway",
      '{"__proto__":{"id":9007199254740993}}',
      JSON.parse('{"__proto__":{"id":"9007199254740993"}}'),
    ],
  ])("with %s keeps its value", (_, body, expected) => {
    const value = parse(body, JSON_TYPE);
    expect(JSON.stringify(value)).toBe(JSON.stringify(expected));
    expect(Object.getPrototypeOf(value)).toBe(Array.isArray(value) ? Array.prototype : Object.prototype);
  });

  test("keeps keys like __proto__ as fields without changing a prototype", () => {
    const value = parse('{"__proto__":{"message":"x"},"constructor":1}', JSON_TYPE) as Record<string, unknown>;
    expect(Object.getPrototypeOf(value)).toBe(Object.prototype);
    expect(Object.keys(value)).toEqual(["__proto__", "constructor"]);
    const form = parse("__proto__=x&toString=y", FORM) as object;
    expect(Object.getPrototypeOf(form)).toBe(Object.prototype);
    expect(Object.keys(form)).toEqual(["__proto__", "toString"]);
  });

  test.each([
    ["not JSON", "{", JSON_TYPE, "invalid_json"],
    ["two values", "{}{}", JSON_TYPE, "invalid_json"],
    ["text where JSON is expected", "hello", "application/xml", "invalid_json"],
    ["a line that is not JSON", '{"a":1}\noops', "application/x-ndjson", "invalid_json"],
    ["bytes that are not UTF-8", Uint8Array.of(0x22, 0xff, 0x22), JSON_TYPE, "invalid_utf8"],
    ["an incomplete character", Uint8Array.of(0x22, 0xc3, 0x22), "text/plain", "invalid_utf8"],
    ["a lone surrogate", Uint8Array.of(0x22, 0xed, 0xa0, 0x80, 0x22), JSON_TYPE, "invalid_utf8"],
    ["nested lists", "[".repeat(129) + "]".repeat(129), JSON_TYPE, "too_deep"],
    ["endlessly nested objects", '{"a":'.repeat(100_000), JSON_TYPE, "too_deep"],
    ["nested lists as text", "[".repeat(200_000), "text/plain", "too_deep"],
    ["nested lists in a form", `payload=${"[".repeat(1000)}`, FORM, "too_deep"],
  ])("with %s is refused", (_, body, contentType, problem) => {
    expect(problemOf(() => parse(body, contentType))).toBe(problem);
  });

  test("may nest 128 deep, not counting brackets in strings", () => {
    const body = `${"[".repeat(128)}"${"[".repeat(500)}\\"["${"]".repeat(128)}`;
    expect(problemOf(() => parse(body, JSON_TYPE))).toBe("none");
  });

  test("to a fixed endpoint must be JSON or a form", () => {
    const fixed = { isMapped: false };
    expect(parse("text=hi&mode=now", FORM, fixed)).toEqual({ text: "hi", mode: "now" });
    expect(parse('{"text":"hi"}', "text/plain", fixed)).toEqual({ text: "hi" });
    expect(problemOf(() => parse("hi", "text/plain", fixed))).toBe("invalid_json");
    expect(problemOf(() => parse("{}\n{}", "application/x-ndjson", fixed))).toBe("invalid_json");
  });

  test("to a strict ingress must have a JSON content type", () => {
    const strict = { isStrict: true };
    expect(parse("{}", "application/json;charset=UTF-8", strict)).toEqual({});
    expect(parse("{}", "application/cloudevents+json", strict)).toEqual({});
    expect(parse("", null, strict)).toEqual({});
    for (const type of [null, "", "text/plain", FORM, "application/x-ndjson", "application/jsonp", "json"]) {
      expect([type, problemOf(() => parse("{}", type, strict))]).toEqual([type, "unsupported_media_type"]);
    }
  });
});

describe("a body of multipart/form-data", () => {
  const MULTIPART = "multipart/form-data; boundary=";
  const read = (body: Uint8Array, contentType: string, isStrict = false): Promise<unknown> =>
    readPayload(body, { contentType, isMapped: true, isStrict });

  async function sent(form: FormData): Promise<[Uint8Array, string]> {
    const request = new Request("http://localhost", { method: "POST", body: form });
    const contentType = request.headers.get("content-type")!;
    return [await request.bytes(), contentType];
  }

  test("has fields, lists of repeated fields, and files with name, type and size", async () => {
    const form = new FormData();
    form.append("from", "Zoë <z@example.org>");
    form.append("to", "a@example.org");
    form.append("to", "b@example.org");
    form.append("__proto__", "own");
    form.append("attachment1", new File(["%PDF"], "bill.pdf", { type: "application/pdf" }));
    const payload = await read(...(await sent(form)));
    expect(payload).toEqual({
      from: "Zoë <z@example.org>",
      to: ["a@example.org", "b@example.org"],
      ["__proto__"]: "own",
      attachment1: { filename: "bill.pdf", type: "application/pdf", size: 4 },
    });
    expect(Object.getPrototypeOf(payload)).toBe(Object.prototype);
  });

  test("is replaced by the JSON of its field payload", async () => {
    const form = new FormData();
    form.append("payload", '{"event":"media.play","id":12345678901234567890}');
    form.append("thumb", new File([Uint8Array.of(0xff, 0xd8)], "thumb.jpg", { type: "image/jpeg" }));
    expect(await read(...(await sent(form)))).toEqual({ event: "media.play", id: "12345678901234567890" });
  });

  test("is refused if it is cut off, has a wrong boundary, or the ingress is strict", async () => {
    const form = new FormData();
    form.append("a", "1");
    const [body, contentType] = await sent(form);
    const problem = async (...args: Parameters<typeof read>): Promise<unknown> =>
      read(...args).catch((error: Refusal) => error.problem);
    expect(await problem(body.slice(0, -10), contentType)).toBe("invalid_form");
    expect(await problem(body, `${MULTIPART}other`)).toBe("invalid_form");
    expect(await problem(body, "multipart/form-data")).toBe("invalid_form");
    expect(await problem(body, `${MULTIPART}\0`)).toBe("invalid_form");
    expect(await problem(body, contentType, true)).toBe("unsupported_media_type");
    expect(await read(new Uint8Array(), contentType)).toEqual({});
    expect(await read(new TextEncoder().encode('{"a":1}'), contentType)).toEqual({ a: 1 });
  });
});
