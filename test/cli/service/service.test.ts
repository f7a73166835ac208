/** Services: their files and commands on each system; a stand-in records the commands. */
import { describe, expect, test } from "bun:test";
import { existsSync, mkdirSync, mkdtempSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { planFor } from "../../../src/cli/service/plans.ts";
import { afterTest } from "../../cleanups.ts";
import { runHearth } from "../../e2e/hearth.ts";

const COMMAND = ["/opt/a & b/he<arth", "main.ts"];

/** The texts of an XML document's elements with this name. Throws if an element is not closed. */
function textsOf(xml: string, name: string): string[] {
  const open: string[] = [];
  for (const [, slash, tag] of xml.matchAll(/<(\/?)([A-Za-z]+)(?:\s[^<>]*)?(?<!\/)>/g)) {
    if (slash === "") open.push(tag!);
    else expect(open.pop()).toBe(tag!);
  }
  expect(open).toEqual([]);
  expect(xml).not.toMatch(/&(?!(?:amp|lt|gt|quot);)/);
  const plain = (text: string): string =>
    text.replaceAll("&lt;", "<").replaceAll("&gt;", ">").replaceAll("&quot;", '"').replaceAll("&amp;", "&");
  return [...xml.matchAll(new RegExp(`<${name}>([^<]*)</${name}>`, "g"))].map((match) => plain(match[1]!));
}

test("macOS runs bootout, which may fail, and bootstrap in the user's domain", () => {
  const plan = planFor("darwin", { command: COMMAND, home: "/Users/a&b", userId: 501, userName: "a" });
  expect(plan.file.path).toBe("/Users/a&b/Library/LaunchAgents/org.hearth.plist");
  expect([...plan.before!, ...plan.install]).toEqual([
    ["launchctl", "bootout", "gui/501/org.hearth"],
    ["launchctl", "enable", "gui/501/org.hearth"],
    ["launchctl", "bootstrap", "gui/501", plan.file.path],
  ]);
  expect(plan.uninstall).toEqual([["launchctl", "bootout", "gui/501/org.hearth"]]);
  expect(plan.status).toEqual(["launchctl", "print", "gui/501/org.hearth"]);
  const log = "/Users/a&b/Library/Logs/hearth.log";
  expect(textsOf(plan.file.text, "string")).toEqual(["org.hearth", ...COMMAND, "serve", "Interactive", log, log]);
});

test("Windows runs a task at logon, without a window", () => {
  const command = [String.raw`C:\Program Files\a & b\hearth.exe`];
  const plan = planFor("win32", { command, home: String.raw`C:\Users\a`, userId: 0, userName: String.raw`R&D\a` });
  const path = String.raw`C:\Users\a\.hearth\service.xml`;
  expect(plan.file).toMatchObject({ path, isUtf16: true });
  expect(plan.install).toEqual([
    ["schtasks", "/Create", "/TN", "Hearth", "/XML", path, "/F"],
    ["schtasks", "/Run", "/TN", "Hearth"],
  ]);
  expect(plan.uninstall.map(([, verb]) => verb)).toEqual(["/End", "/Delete"]);
  expect(textsOf(plan.file.text, "Command")).toEqual(["conhost.exe"]);
  // without them only an administrator may register the task, and it would have a background task's priority
  expect(textsOf(plan.file.text, "UserId")).toEqual([String.raw`R&D\a`, String.raw`R&D\a`]);
  expect(textsOf(plan.file.text, "LogonType")).toEqual(["InteractiveToken"]);
  expect(textsOf(plan.file.text, "Priority")).toEqual(["4"]);
  expect(textsOf(plan.file.text, "Arguments")).toEqual([`--headless "${command[0]}" serve`]);
});

describe("Linux", () => {
  const unit = (...command: string[]): string =>
    planFor("linux", { command, home: "/home/a", userId: 1000, userName: "a" }).file.text;

  test("specifiers, variables and quotes in a path are escaped", () => {
    const [line] = /^ExecStart=.*$/m.exec(unit(String.raw`/opt/a b/%h $HOME "x" \y`))!;
    expect(line).toBe(String.raw`ExecStart="/opt/a b/%%h $$HOME \"x\" \\y" "serve"`);
  });

  test.skipIf(!Bun.which("systemd-analyze"))("systemd-analyze verifies the unit", () => {
    const folder = mkdtempSync(join(tmpdir(), "hearth-unit-"));
    afterTest(() => rmSync(folder, { recursive: true }));
    writeFileSync(join(folder, "hearth.service"), unit("/bin/true"));
    const verified = Bun.spawnSync(
      ["systemd-analyze", "verify", "--user", "--man=no", join(folder, "hearth.service")],
      {
        env: { ...process.env, XDG_RUNTIME_DIR: folder },
      },
    );
    const said = verified.stderr.toString().split("\n");
    expect(said.filter((line) => line.includes("hearth.service"))).toEqual([]);
  });
});

test("another system is refused", () => {
  expect(() => planFor("freebsd", { command: COMMAND, home: "/", userId: 1, userName: "a" })).toThrow("got freebsd");
});

describe.skipIf(process.platform !== "linux")("with a script in place of systemctl", () => {
  /** A home, and a folder of programs in which `systemctl` records its arguments and ends with a code. */
  function makeHome(code: number) {
    const home = mkdtempSync(join(tmpdir(), "hearth-service-"));
    afterTest(() => rmSync(home, { recursive: true, force: true }));
    const bin = join(home, "bin");
    mkdirSync(bin);
    const asked = join(home, "asked");
    const script = `#!/bin/sh\necho "$@" >> ${asked}\necho no bus >&2\necho running\nexit ${code}\n`;
    writeFileSync(join(bin, "systemctl"), script, { mode: 0o755 });
    const run = (...args: string[]) => runHearth(["service", ...args], { home, env: { PATH: bin } });
    const unit = join(home, ".config/systemd/user/hearth.service");
    return { run, unit, asked: () => (existsSync(asked) ? readFileSync(asked, "utf8").trim().split("\n") : []) };
  }

  test("install, status and uninstall write and remove the unit, and call systemctl", async () => {
    const { run, unit, asked } = makeHome(0);
    expect(await run("install", "--print")).toMatchObject({ code: 0, stdout: expect.stringContaining(`${unit}:\n`) });
    expect([existsSync(unit), asked()]).toEqual([false, []]);
    expect(await run("install")).toMatchObject({ code: 0, stderr: expect.stringContaining("the service runs") });
    expect(readFileSync(unit, "utf8")).toContain(' "serve"\n');
    expect(await run("status")).toMatchObject({ code: 0, stdout: "running\n" });
    expect(await run("uninstall")).toMatchObject({ code: 0 });
    expect(existsSync(unit)).toBe(false);
    expect(asked()).toEqual([
      "--user daemon-reload",
      "--user enable --now hearth.service",
      "--user status --no-pager hearth.service",
      "--user disable --now hearth.service",
    ]);
  });

  test("an error of systemctl is shown, and uninstall removes the unit", async () => {
    const { run, unit } = makeHome(1);
    const refused = { code: 1, stderr: expect.stringMatching(/systemctl --user \S+.*: no bus/) };
    expect(await run("install")).toMatchObject(refused);
    expect(await run("uninstall")).toMatchObject(refused);
    expect(existsSync(unit)).toBe(false);
    expect((await run("status")).code).toBe(1);
  });
});
