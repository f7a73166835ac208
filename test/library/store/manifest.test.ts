import { describe, expect, test } from "bun:test";
import fc from "fast-check";
import { AppError } from "../../../src/base/errors.ts";
import { blobName, digestOf, parseDigest } from "../../../src/library/store/digest.ts";
import {
  CONFIG_TYPE,
  encodeManifest,
  manifestBytes,
  mediaType,
  parseManifest,
} from "../../../src/library/store/manifest.ts";

const digest = digestOf(new Uint8Array());
const layer = { mediaType: mediaType("model"), digest, size: 7 };
const manifest = { config: { mediaType: CONFIG_TYPE, digest, size: 3 }, layers: [layer] };
const parse = (value: unknown) => parseManifest(new TextEncoder().encode(JSON.stringify(value)), "file");

test("a manifest is read back as it was written, with the digest of its bytes", () => {
  const bytes = encodeManifest(manifest);
  expect(parseManifest(bytes, "file")).toEqual({ ...manifest, digest: digestOf(bytes).slice("sha256:".length) });
  expect(manifestBytes(manifest)).toBe(10);
});

test("a digest is accepted with a colon or a dash and in any case", () => {
  const hex = "AB".repeat(32);
  expect(parseDigest(`sha256-${hex}`)).toBe(parseDigest(`SHA256:${hex.toLowerCase()}`));
  expect(blobName(parseDigest(`sha256:${hex}`))).toBe(`sha256-${hex.toLowerCase()}`);
  for (const bad of ["sha256:zz", `sha256:${hex}0`, `md5:${hex}`, `../sha256:${hex}`]) {
    expect(() => parseDigest(bad)).toThrow("invalid digest format");
  }
});

describe("an invalid manifest is refused by file and field", () => {
  test.each([
    [[], "file: root: expected an object, got []"],
    [{ layers: [] }, "file: config: expected an object, got nothing"],
    [{ ...manifest, layers: {} }, "file: layers: expected an array of at most 8192, got {}"],
    [{ ...manifest, layers: [{ ...layer, size: -1 }] }, "file: layers[0].size: expected a number of bytes, got -1"],
    [{ ...manifest, layers: [{ ...layer, size: "7" }] }, 'file: layers[0].size: expected a number of bytes, got "7"'],
    [
      { ...manifest, layers: [layer, { ...layer, digest: "../../etc/passwd" }] },
      'file: layers[1].digest: expected sha256:<64 hex digits>, got "../../etc/passwd"',
    ],
    [{ ...manifest, layers: [{ digest, size: 1 }] }, "file: layers[0].mediaType: expected a string, got nothing"],
  ])("%j", (value, message) => expect(() => parse(value)).toThrow(message));

  test("text instead of JSON, and a file that is too large", () => {
    expect(() => parseManifest(new TextEncoder().encode("{"), "file")).toThrow("file: not JSON");
    expect(() => parseManifest(new Uint8Array(5 * 1024 * 1024), "file")).toThrow("expected at most 4194304 bytes");
  });
});

test("any JSON gives a manifest or an AppError", () => {
  fc.assert(
    fc.property(fc.jsonValue(), fc.jsonValue(), (config, layers) => {
      try {
        parse({ config, layers });
      } catch (error) {
        expect(error).toBeInstanceOf(AppError);
      }
    }),
    { seed: 5, numRuns: 500 },
  );
});
