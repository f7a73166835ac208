import { describe, expect, test } from "bun:test";
import { mkdtempSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { History } from "../../../src/cli/run/history.ts";
import { HistorySearch } from "../../../src/cli/run/search.ts";

describe("a search of the history", () => {
  const prompts = ["tell me a story", "How many foxes?", "a story of a fox"];
  const type = (search: HistorySearch, text: string): void =>
    [...text].forEach((char) => expect(search.onKey(char, { name: char })).toBe("searching"));
  const again = { name: "r", ctrl: true };

  test("finds the newest first, without regard to case, and older ones with Ctrl+R", () => {
    const search = new HistorySearch(prompts);
    expect(search.match).toBeUndefined();
    type(search, "FOX");
    expect(search.match).toBe("How many foxes?");
    search.onKey(undefined, again);
    expect(search.match).toBe("a story of a fox");
    search.onKey(undefined, again); // there is no older match
    expect(search.match).toBe("a story of a fox");
  });

  test("starts again if a letter is deleted, and has no match for unknown text", () => {
    const search = new HistorySearch(prompts);
    type(search, "storyx");
    expect(search.match).toBeUndefined();
    search.onKey(undefined, { name: "backspace" });
    expect(search.match).toBe("tell me a story");
  });

  test("ends with Enter, Escape or a key that edits", () => {
    const search = new HistorySearch(prompts);
    expect(search.onKey("\r", { name: "return" })).toBe("cancel"); // nothing was found
    type(search, "fox");
    expect(search.onKey("\r", { name: "return" })).toBe("send");
    expect(search.onKey("\x1b", { name: "escape" })).toBe("cancel");
    expect(search.onKey("\x03", { name: "c", ctrl: true })).toBe("cancel");
    expect(search.onKey(undefined, { name: "left" })).toBe("edit");
  });
});

test("the history keeps a message of several lines as one", () => {
  const folder = mkdtempSync(join(tmpdir(), "hearth-history-"));
  const path = join(folder, "deep/history");
  try {
    const history = new History(path);
    for (const prompt of ["one", '"""two\nlines"""', "one"]) {
      history.add(prompt);
      history.save(prompt);
    }
    expect(history.prompts).toEqual(["one", '"""two\nlines"""']);
    expect(readFileSync(path, "utf8")).toBe('"""two\rlines"""\none\n');
    expect(new History(path).prompts).toEqual(history.prompts);
    writeFileSync(path, "of Windows\r\nold\r\n");
    expect(new History(path).prompts).toEqual(["old", "of Windows"]);
  } finally {
    rmSync(folder, { recursive: true });
  }
});
