/** Opens the C library under the names of this system only. */
import { expect, test } from "bun:test";
import { join, resolve } from "node:path";
import { libcNames, openLibc } from "../../src/base/libc.ts";

test("each system has its names: on Linux that of glibc, then that of musl", () => {
  expect(libcNames("linux", "x64")).toEqual(["libc.so.6", "libc.musl-x86_64.so.1"]);
  expect(libcNames("linux", "arm64")).toEqual(["libc.so.6", "libc.musl-aarch64.so.1"]);
  expect(libcNames("darwin", "arm64")).toEqual(["libSystem.B.dylib"]);
});

test("a function that the library lacks is no error", () => {
  expect(openLibc({ hearth_has_no_such_function: { args: [], returns: "i32" } })).toBeUndefined();
  const libc = openLibc({ getpid: { args: [], returns: "i32" } })!;
  expect(libc.symbols.getpid()).toBe(process.pid);
  libc.close();
});

test("every file opens the C library by these names: a name of glibc alone ends runners on musl", async () => {
  const root = resolve(import.meta.dir, "../../src");
  const naming: string[] = [];
  for await (const path of new Bun.Glob("**/*.ts").scan(root)) {
    const text = await Bun.file(join(root, path)).text();
    if (/dlopen\(\s*["'](libc\.|libSystem)/.test(text)) naming.push(path);
  }
  expect(naming).toEqual([]);
});
