import { describe, expect, test } from "bun:test";
import fc from "fast-check";
import { join } from "node:path";
import { displayName, fullName, parseName, parseReference } from "../../../src/library/store/name.ts";
import { manifestSegments, nameAt } from "../../../src/library/store/segments.ts";

describe("a name is read from the right, with defaults for what is missing", () => {
  test.each([
    ["llama3", "registry.ollama.ai/library/llama3:latest", "llama3:latest"],
    ["llama3:8b", "registry.ollama.ai/library/llama3:8b", "llama3:8b"],
    ["user/m", "registry.ollama.ai/user/m:latest", "user/m:latest"],
    ["hf.co/user/repo:Q4_K_M", "hf.co/user/repo:Q4_K_M", "hf.co/user/repo:Q4_K_M"],
    ["host:5000/ns/m:t", "host:5000/ns/m:t", "host:5000/ns/m:t"],
    ["host:5000/ns/m", "host:5000/ns/m:latest", "host:5000/ns/m:latest"],
    ["https://host/ns/m", "host/ns/m:latest", "host/ns/m:latest"],
    ["registry.ollama.ai/library/m:t", "registry.ollama.ai/library/m:t", "m:t"],
    ["example.com/library/m", "example.com/library/m:latest", "example.com/library/m:latest"],
    ["_x.1-y:v1.0", "registry.ollama.ai/library/_x.1-y:v1.0", "_x.1-y:v1.0"],
  ])("%s", (text, full, short) => {
    const name = parseName(text);
    expect(fullName(name)).toBe(full);
    expect(displayName(name)).toBe(short);
  });
});

test.each([
  ["", "empty"],
  ["/", "separators only"],
  ["m:", "empty tag"],
  [":t", "empty model"],
  ["/m", "empty namespace"],
  ["a//m", "empty namespace"],
  ["a/b/c/m", "host with a slash"],
  ["..", "parent folder"],
  ["../m", "parent folder"],
  ["m:..", "parent folder"],
  ["-m", "leading dash"],
  ["a b", "blank"],
  ["m@sha256:00", "digest"],
  ["na.me/m", "dot in a namespace"],
  ["m\0", "zero byte"],
  ["a\\b", "backslash"],
  ["m".repeat(81), "81 characters"],
  ["ü", "letter beyond ASCII"],
])("%p is not a valid name: %s", (text) => {
  expect(() => parseName(text)).toThrow("invalid model name");
});

test("no text names a manifest outside of the store", () => {
  fc.assert(
    fc.property(
      fc.string({ unit: fc.constantFrom("a", ".", "/", ":", "-", "\\", "\0", " "), maxLength: 12 }),
      (text) => {
        let segments: readonly string[];
        try {
          segments = manifestSegments(parseName(text), "linux");
        } catch {
          return;
        }
        expect(segments).toHaveLength(4);
        expect(join("/store", ...segments).split("/")).toEqual(["", "store", ...segments]);
      },
    ),
    { seed: 11, numRuns: 3000 },
  );
});

test.each([
  ["localhost:5000/ns/m:t", "localhost%3A5000/ns/m/t"],
  ["host/Nul/con.x:PRN", "host/%4Eul/%63on.x/%50RN"],
  ["com1/aux/m.:v1..", "%63om1/%61ux/m%2E/v1.%2E"],
  ["host/console/nulls:auxiliary", "host/console/nulls/auxiliary"],
])("Windows has a file for '%s'", (text, path) => {
  const name = parseName(text);
  expect(manifestSegments(name, "win32").join("/")).toBe(path);
  expect(nameAt(path.split("/"), "win32")).toEqual(name);
  expect(manifestSegments(name, "darwin")).toEqual(Object.values(name));
});

test.each(["h/n/m/t%00", "h/n/m/%2E%2E", "h/n/m%5Cx/t", "h/n/m/%zz", "h/n/m"])(
  "the segments '%s' belong to no name on Windows",
  (path) => expect(() => nameAt(path.split("/"), "win32")).toThrow("invalid model name"),
);

describe("a reference in a request", () => {
  test("may have blanks around it and the tag :local", () => {
    expect(displayName(parseReference("  m:8b "))).toBe("m:8b");
    expect(displayName(parseReference("m:local"))).toBe("m:latest");
    expect(displayName(parseReference("m:8b:LOCAL"))).toBe("m:8b");
  });
  test("may not have both :local and :cloud", () => {
    expect(() => parseReference("m:cloud:local")).toThrow('use either :local or :cloud, not both: "m:cloud:local"');
  });
});
