/** The two ways to replace a program; Windows' one is tried on every system. */
import { beforeEach, describe, expect, test } from "bun:test";
import { mkdirSync, mkdtempSync, readdirSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { previousOf, putProgram, rollBack } from "../../../src/cli/update/replace.ts";
import { afterTest } from "../../cleanups.ts";

let folder: string;
beforeEach(() => {
  folder = mkdtempSync(join(tmpdir(), "hearth-replace-"));
  afterTest(() => rmSync(folder, { recursive: true, force: true }));
});

test("the previous program keeps its file extension", () => {
  expect([previousOf("/a/hearth"), previousOf("/a/hearth.exe"), previousOf("/a.exe/hearth-0.2")]).toEqual(
    ["/a/hearth.previous", "/a/hearth.previous.exe", "/a.exe/hearth-0.2.previous"].map((path) => join(path)),
  );
});

describe.each(["linux", "win32"] as const)("on %s", (platform) => {
  const put = (name: string, text: string): string => {
    writeFileSync(join(folder, name), text);
    return join(folder, name);
  };
  const files = () =>
    Object.fromEntries(readdirSync(folder).map((name) => [name, readFileSync(join(folder, name), "utf8")]));

  test("an update keeps the previous program only, and a rollback exchanges them", async () => {
    const program = put("hearth", "one");
    for (const text of ["two", "three"]) await putProgram(program, put("next", text), { platform });
    expect(files()).toEqual({ hearth: "three", "hearth.previous": "two" });
    await rollBack(program, { platform });
    expect(files()).toEqual({ hearth: "two", "hearth.previous": "three" });
  });

  test("a failed update does not change the program", async () => {
    const program = put("hearth", "one");
    await expect(putProgram(program, join(folder, "missing"), { platform })).rejects.toThrow("ENOENT");
    expect(files()["hearth"]).toBe("one");
  });

  test("a rollback fails if a folder has the previous program's name, and changes nothing", async () => {
    const program = put("hearth", "one");
    mkdirSync(join(folder, "hearth.previous"));
    await expect(rollBack(program, { platform })).rejects.toThrow("there is no earlier program");
    expect(readFileSync(program, "utf8")).toBe("one");
  });
});
