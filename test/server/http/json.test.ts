import { describe, expect, test } from "bun:test";
import fc from "fast-check";
import { AppError } from "../../../src/base/errors.ts";
import { decodeBase64 } from "../../../src/server/http/base64.ts";
import { parseFirstJson } from "../../../src/server/http/json.ts";
import { cpuMs } from "../../cpu-time.ts";

describe("the first JSON value of a text", () => {
  test("is read whatever follows it", () => {
    fc.assert(
      fc.property(fc.json(), fc.constantFrom("", " ", "\n]", " }", " x", ' "'), (json, rest) => {
        expect(parseFirstJson(json + rest)).toEqual(JSON.parse(json));
      }),
      { seed: 21, numRuns: 500 },
    );
  });

  test("is a value or a bad request for any text", () => {
    const unit = fc.constantFrom(
      ..."{}[]:,\"\\tfnrue0123-+.eE \n'é".split(""),
      "true",
      "false",
      "null",
      '"a"',
      "\\u12",
    );
    fc.assert(
      fc.property(fc.string({ unit, maxLength: 12 }), (text) => {
        let expected: unknown;
        try {
          expected = JSON.parse(text);
        } catch {
          expected = undefined;
        }
        try {
          const found = parseFirstJson(text);
          if (expected !== undefined) expect(found).toEqual(expected);
        } catch (error) {
          expect(error).toBeInstanceOf(AppError);
          expect((error as AppError).message).toMatch(/^(invalid character '.{1,6}' |unexpected EOF$)/);
          expect(expected).toBeUndefined();
        }
      }),
      { seed: 22, numRuns: 5000 },
    );
  });

  test("may hold brackets in strings, but not nest deeper than the limit", () => {
    const text = JSON.stringify({ prompt: `\\"${"[".repeat(5000)}\\` });
    expect(parseFirstJson(text)).toEqual(JSON.parse(text));
    expect(parseFirstJson("[".repeat(1000) + "]".repeat(1000))).toBeArray();
    expect(() => parseFirstJson("[".repeat(1001) + "]".repeat(1001))).toThrow("exceeded max depth");
  });

  test("has a limit of texts and values, which long ones do not reach", () => {
    const refused = (text: string, what: string): void =>
      expect(() => parseFirstJson(text)).toThrow(`request body: expected at most ${what}, got more`);
    const keys = (count: number): string => `{${'"k":1,'.repeat(count - 1)}"k":1}`;
    const texts = (count: number): string => `[${'"a",'.repeat(count - 1)}"a"]`;
    expect(parseFirstJson(keys(100_000))).toEqual({ k: 1 });
    expect(parseFirstJson(texts(100_000))).toHaveLength(100_000);
    refused(keys(100_001), "100000 keys and texts");
    refused(texts(100_001), "100000 keys and texts");
    refused(`{"messages":[${'{"role":"user"},'.repeat(50_000)}1]}`, "100000 keys and texts");
    refused(`{"options":${keys(1_000_000)}}`, "100000 keys and texts");
    expect(parseFirstJson(`[${"1,".repeat(1_900_000)}1]`)).toHaveLength(1_900_001);
    for (const each of ["1", "[]", "{}", "null"]) refused(`[${`${each},`.repeat(2_000_000)}1]`, "2000000 values");
    const image = "A,[{".repeat(1_000_000);
    const body = { images: [image, `${image}\\"`] };
    expect(Bun.deepEquals(parseFirstJson(JSON.stringify(body)), body)).toBe(true);
  });

  test("with a trailing NUL or a million brackets is refused in no time", () => {
    const startedMs = cpuMs();
    expect(() => parseFirstJson("[".repeat(1_000_000))).toThrow(AppError);
    expect(() => parseFirstJson(`"${"\\".repeat(1_000_000)}`)).toThrow(AppError);
    expect(cpuMs() - startedMs).toBeLessThan(5000);
  });
});

describe("base64", () => {
  test("of any bytes is decoded, also in lines", () => {
    fc.assert(
      fc.property(fc.uint8Array({ maxLength: 40 }), (bytes) => {
        const text = Buffer.from(bytes).toString("base64");
        expect(new Uint8Array(decodeBase64(text))).toEqual(bytes);
        expect(new Uint8Array(decodeBase64(`${text.replace(/(.{3})/g, "$1\r\n")}\n`))).toEqual(bytes);
      }),
      { seed: 23 },
    );
  });

  test.each([
    ["!", 0],
    ["AA A", 2],
    ["data:image/png;base64,AAAA", 4],
    ["A", 0],
    ["AAAAA", 4],
    ["AA", 0],
    ["AAA", 0],
    ["=", 0],
    ["A=", 1],
    ["AA=", 3],
    ["AA=A", 2],
    ["AA==A", 4],
    ["AAA=A", 4],
    ["AA-_", 2],
    ["AAAA\n=", 5],
  ])("%p is wrong at byte %d", (text, at) => {
    expect(() => decodeBase64(text)).toThrow(`illegal base64 data at input byte ${at}`);
  });
});
