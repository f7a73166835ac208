import { describe, expect, test } from "bun:test";
import fc from "fast-check";
import { AppError } from "../../../src/base/errors.ts";
import { decodeBase64 } from "../../../src/server/http/base64.ts";
import { parseBody } from "../../../src/server/http/json.ts";
import { cpuMs } from "../../cpu-time.ts";

describe("the JSON of a request", () => {
  test("gives a value or a bad request for any text", () => {
    const unit = fc.constantFrom(..."{}[]:,\"\\tfnrue0123-+.eE \n'é".split(""), "true", "null", '"a"', "\\u12");
    fc.assert(
      fc.property(fc.string({ unit, maxLength: 12 }), (text) => {
        let expected: unknown;
        try {
          expected = JSON.parse(text);
        } catch {
          expect(() => parseBody(text)).toThrow(AppError);
          return;
        }
        expect(parseBody(text)).toEqual(expected);
      }),
      { seed: 22, numRuns: 5000 },
    );
  });

  test("is not quoted in an error", () => {
    for (const text of ['{"a":secret}', '{"a":"b" secret}']) {
      expect(() => parseBody(text)).toThrow(/^request body: expected JSON: (?!.*secret)/);
    }
  });

  test("may hold brackets in strings, but not nest deeper than the limit", () => {
    const text = JSON.stringify({ prompt: `\\"${"[".repeat(5000)}\\` });
    expect(parseBody(text)).toEqual(JSON.parse(text));
    expect(parseBody("[".repeat(1000) + "]".repeat(1000))).toBeArray();
    expect(() => parseBody("[".repeat(1001) + "]".repeat(1001))).toThrow(
      "request body: expected at most 1000 levels, got more",
    );
  });

  test("has a limit on keys and texts, which long texts do not exceed", () => {
    const refused = (text: string, what: string): void =>
      expect(() => parseBody(text)).toThrow(`request body: expected at most ${what}, got more`);
    const keys = (count: number): string => `{${'"k":1,'.repeat(count - 1)}"k":1}`;
    const texts = (count: number): string => `[${'"a",'.repeat(count - 1)}"a"]`;
    expect(parseBody(keys(100_000))).toEqual({ k: 1 });
    expect(parseBody(texts(100_000))).toHaveLength(100_000);
    refused(keys(100_001), "100000 keys and texts");
    refused(texts(100_001), "100000 keys and texts");
    refused(`{"messages":[${'{"role":"user"},'.repeat(50_000)}1]}`, "100000 keys and texts");
    refused(`{"options":${keys(1_000_000)}}`, "100000 keys and texts");
    expect(parseBody(`[${"1,".repeat(1_900_000)}1]`)).toHaveLength(1_900_001);
    for (const each of ["1", "[]", "{}", "null"]) refused(`[${`${each},`.repeat(2_000_000)}1]`, "2000000 values");
    const image = "A,[{".repeat(1_000_000);
    const body = { images: [image, `${image}\\"`] };
    expect(Bun.deepEquals(parseBody(JSON.stringify(body)), body)).toBe(true);
  });

  test("is refused quickly if it has a million brackets or backslashes", () => {
    const startedMs = cpuMs();
    expect(() => parseBody("[".repeat(1_000_000))).toThrow(AppError);
    expect(() => parseBody(`"${"\\".repeat(1_000_000)}`)).toThrow(AppError);
    expect(cpuMs() - startedMs).toBeLessThan(5000);
  });
});

describe("base64", () => {
  test("decodes any bytes, with or without padding and line breaks", () => {
    fc.assert(
      fc.property(fc.uint8Array({ maxLength: 40 }), (bytes) => {
        const text = Buffer.from(bytes).toString("base64");
        for (const each of [text, text.replace(/=+$/, ""), `${text.replace(/(.{3})/g, "$1\r\n")}\n`]) {
          expect(new Uint8Array(decodeBase64(each, "x"))).toEqual(bytes);
        }
      }),
      { seed: 23 },
    );
  });

  test.each(["!", "data:image/png;base64,AAAA", "A", "AAAAA", "=", "A=", "AA=", "AA=A", "AA==A", "AAA=A", "AA-_"])(
    "refuses %p with its field",
    (text) => {
      const error = new AppError("bad_request", "images.3: expected base64, got text that is not");
      expect(() => decodeBase64(text, "images.3")).toThrow(error);
    },
  );
});
