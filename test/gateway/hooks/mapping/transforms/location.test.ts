import { afterEach, beforeEach, describe, expect, test } from "bun:test";
import { mkdirSync, mkdtempSync, rmSync, symlinkSync, truncateSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import fc from "fast-check";
import { AppError } from "../../../../../src/base/errors.ts";
import { findModule, isCurrent } from "../../../../../src/gateway/hooks/mapping/transforms/location.ts";

let home: string;
let folder: string;
beforeEach(() => {
  home = mkdtempSync(join(tmpdir(), "hearth-location-"));
  folder = join(home, "transforms");
  mkdirSync(join(folder, "sub"), { recursive: true });
  write("transforms/a.ts", "export default 1;");
  write("transforms/sub/b.js", "export default 1;");
  write("outside.ts", "export default 1;");
  write("transforms-too/a.ts", "export default 1;");
});
afterEach(() => rmSync(home, { recursive: true, force: true }));

function write(path: string, text: string): void {
  mkdirSync(join(home, path, ".."), { recursive: true });
  writeFileSync(join(home, path), text);
}

test.each(["a.ts", "./a.ts", "sub/b.js", "sub/../a.ts", "sub//b.js"])("%s is inside of the folder", (module) =>
  expect(findModule(folder, module).version).toMatch(/^[0-9a-f]{64}$/),
);
test("an absolute path may be inside of the folder", () =>
  expect(findModule(folder, join(folder, "a.ts")).file).toEndWith("transforms/a.ts"));

describe("a transform is refused", () => {
  test.each([
    ["../outside.ts", "outside of the folder"],
    ["sub/../../outside.ts", "outside of the folder"],
    ["../transforms-too/a.ts", "outside of the folder"],
    ["/etc/passwd", "outside of the folder"],
    [".", "outside of the folder"],
    ["file:///etc/passwd", "expected a path in the folder of transforms"],
    ["https://example.com/a.ts", "expected a path in the folder of transforms"],
    ["data:text/javascript,1", "expected a path in the folder of transforms"],
    ["C:\\a.ts", "expected a path in the folder of transforms"],
    ["a.ts\0.js", "expected a path in the folder of transforms"],
    ["sub", "expected a file that ends in .ts"],
    ["a", "expected a file that ends in .ts"],
    ["a.sh", "expected a file that ends in .ts"],
    ["nope.ts", "ENOENT"],
  ])("for the path %j", (module, problem) => expect(() => findModule(folder, module)).toThrow(problem));

  test("for a link to a file outside", () => {
    symlinkSync(join(home, "outside.ts"), join(folder, "link.ts"));
    expect(() => findModule(folder, "link.ts")).toThrow("a link to outside");
  });
  test("for a link to a folder outside", () => {
    symlinkSync(join(home, "transforms-too"), join(folder, "dir"));
    expect(() => findModule(folder, "dir/a.ts")).toThrow("a link to outside");
  });
  test("for a folder named like a module", () => {
    mkdirSync(join(folder, "dir.ts"));
    expect(() => findModule(folder, "dir.ts")).toThrow("is not a file");
  });
  test("for a module that is too large", () => {
    truncateSync(join(folder, "a.ts"), 2 * 1024 * 1024);
    expect(() => findModule(folder, "a.ts")).toThrow("expected at most 1048576 bytes, got 2097152");
  });
  test("if the folder of transforms does not exist", () =>
    expect(() => findModule(join(home, "nowhere"), "a.ts")).toThrow("the folder of transforms"));

  test.each([
    ["import '../outside.ts';", "imports '../outside.ts', outside of the folder"],
    ["export * from '../transforms-too/a.ts';", "outside of the folder"],
    ["const x = require('../outside.ts');", "outside of the folder"],
    ["await import('../outside.ts');", "outside of the folder"],
    ["import './sub/b.js'; import './link.ts';", "outside of the folder"],
    ["import './nope.ts';", "imports './nope.ts': no such file"],
    ["import 'https://example.com/a.ts';", "imports 'https://example.com/a.ts': no such file"],
    ["export default (", "cannot be read as code"],
  ])("for a module with %s", (text, problem) => {
    symlinkSync(join(home, "outside.ts"), join(folder, "link.ts"));
    write("transforms/c.ts", text);
    expect(() => findModule(folder, "c.ts")).toThrow(problem);
  });
});

describe("the version of a module", () => {
  test("is a hash of all its files", () => {
    write("transforms/c.ts", "import './sub/b.js';");
    const first = findModule(folder, "c.ts");
    expect(isCurrent(first)).toBe(true);
    write("transforms/sub/b.js", "export default 2;");
    expect(isCurrent(first)).toBe(false);
    expect(findModule(folder, "c.ts").version).not.toBe(first.version);
    write("transforms/sub/b.js", "export default 1;");
    expect(isCurrent(first)).toBe(false);
    expect(findModule(folder, "c.ts").version).toBe(first.version);
  });
  test("is not current once a file is removed", () => {
    const first = findModule(folder, "a.ts");
    rmSync(join(folder, "a.ts"));
    expect(isCurrent(first)).toBe(false);
  });
  test("covers files that import each other in a circle", () => {
    write("transforms/c.ts", "import './d.ts';");
    write("transforms/d.ts", "import './c.ts';");
    expect(findModule(folder, "c.ts").stamps.size).toBe(2);
  });
});

test("no name leads out of the folder, and every refusal is an error of the product", () => {
  const piece = fc.oneof(
    fc.constantFrom("..", "/", ".", "a.ts", "sub", "~", "%2e%2e", "\\", "outside.ts", "transforms"),
    fc.string(),
  );
  fc.assert(
    fc.property(fc.array(piece, { maxLength: 6 }), (pieces) => {
      try {
        expect(findModule(folder, pieces.join("")).file.startsWith(`${folder}/`)).toBe(true);
      } catch (error) {
        expect(error).toBeInstanceOf(AppError);
      }
    }),
    { numRuns: 1000 },
  );
});
