/** Opens the C library under the names of this system only. */
import { expect, test } from "bun:test";
import { join, resolve } from "node:path";
import { libcNames, openLibc } from "../../src/base/libc.ts";

test("libcNames gives each system's names, on Linux glibc's before musl's", () => {
  expect(libcNames("linux", "x64")).toEqual(["libc.so.6", "libc.musl-x86_64.so.1"]);
  expect(libcNames("linux", "arm64")).toEqual(["libc.so.6", "libc.musl-aarch64.so.1"]);
  expect(libcNames("darwin", "arm64")).toEqual(["libSystem.B.dylib"]);
});

test("a library that lacks a function is undefined, without an error", () => {
  expect(openLibc({ hearth_has_no_such_function: { args: [], returns: "i32" } })).toBeUndefined();
  const libc = openLibc({ getpid: { args: [], returns: "i32" } })!;
  expect(libc.symbols.getpid()).toBe(process.pid);
  libc.close();
});

test("no source file opens the C library by a name of its own", async () => {
  const root = resolve(import.meta.dir, "../../src");
  const naming: string[] = [];
  for await (const path of new Bun.Glob("**/*.ts").scan(root)) {
    const text = await Bun.file(join(root, path)).text();
    if (/dlopen\(\s*["'](libc\.|libSystem)/.test(text)) naming.push(path);
  }
  expect(naming).toEqual([]);
});
