/** docs/settings.md against the settings: every variable, its key in the file, its default and an example. */
import { homedir } from "node:os";
import { join } from "node:path";
import { expect, test } from "bun:test";
import { SETTINGS, type Setting } from "../../../src/base/config/settings.ts";

const ROOT = join(import.meta.dir, "../../..");
const HOME = join(homedir(), ".hearth"); // `~/.hearth` in the tables
const settings = Object.entries(SETTINGS).map(([name, row]) => ({ name, ...(row as unknown as Setting<unknown>) }));
const text = await Bun.file(join(ROOT, "docs/settings.md")).text();
const rows = [...text.matchAll(/^\| `(HEARTH_\w+)` *\|(.*)\|$/gm)].map(([, variable = "", cells = ""]) => ({
  variable,
  cells: cells.split("|").map((cell) => cell.trim()),
}));
const codesOf = (markdown: string): string[] => [...markdown.matchAll(/`([^`]+)`/g)].map(([, code = ""]) => code);
const rowOf = ({ env }: Setting<unknown>): string[] => rows.find(({ variable }) => variable === env[0])?.cells ?? [];

/** Names in messages, and folders of reference data of the repository's tests. */
const NOT_SETTINGS = ["HEARTH_X", "HEARTH_GOLDEN", "HEARTH_ARCHS", "HEARTH_TEMPLATES"];

test("docs/settings.md has one row for each variable that is read, and no other", async () => {
  const sources = ["config", "settings", "unknown"].map((name) => Bun.file(join(ROOT, `src/base/config/${name}.ts`)));
  const code = (await Promise.all(sources.map((file) => file.text()))).join();
  const read = new Set(code.match(/HEARTH_\w*[A-Z]\b/g)).difference(new Set(NOT_SETTINGS));
  expect(rows.map(({ variable }) => variable).toSorted()).toEqual([...read].toSorted());
  const theirs = settings.flatMap(({ env }) => env).filter((name) => name.startsWith("OLLAMA_"));
  const list = /^Hearth reads ([^.;]*) if our variable/m.exec(text)?.[1] ?? "";
  expect(codesOf(list).toSorted()).toEqual(theirs.toSorted());
});

test.each(settings)("$env.0: the row has the default, the key in the file, and an example", (setting) => {
  const { name, env, key = name, initial, parse } = setting;
  const [standard = "", what = ""] = rowOf(setting);
  const [code] = codesOf(standard);
  const none = [undefined, Infinity, []] as unknown[];
  if (code === undefined) expect(none).toContainEqual(initial(HOME));
  else expect(parse(code)).toEqual(initial(HOME));
  const plain = env[0]!.replace("HEARTH_", "").toLowerCase();
  const camel = plain.replace(/_(.)/g, (_, letter: string) => letter.toUpperCase());
  if (key !== camel) expect(codesOf(what)).toContain(key);
  const values = codesOf(what.replace(/In the file.*/, "")).map(parse);
  expect(values.filter((value) => value !== undefined && !Bun.deepEquals(value, initial(HOME)))).not.toEqual([]);
  for (const [, example] of what.matchAll(/such as `([^`]+)`/g))
    expect([example, parse(example)]).not.toEqual([example, undefined]);
});
