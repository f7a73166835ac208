/** Split models: opened by their first part, with clear words for every way in which parts can be wrong. */
import { expect, test } from "bun:test";
import { mkdir, rename, rm } from "node:fs/promises";
import { openGguf } from "../../../../src/engine/formats/files/gguf.ts";
import { readHeader } from "../../../../src/engine/formats/files/read-header.ts";
import { writeGguf, type WriteModel } from "../../../../src/engine/formats/files/write.ts";
import { quants } from "../../../../src/engine/formats/quant/index.ts";
import { failure, withFolder } from "./fixture.ts";

type Path = (name: string) => string;

const partName = (part: number): string => `m-0000${part}-of-00003.gguf`;

/** Writes three parts with one tensor each; `changes` replaces metadata or tensors of a part. */
async function writeParts(path: Path, changes: { [part: number]: Partial<WriteModel> } = {}): Promise<void> {
  for (const part of [1, 2, 3]) {
    const tensors = [{ name: `t.${part}`, shape: [8], quant: quants.f32, data: new Uint8Array(32).fill(part) }];
    const split = { "split.no": { u16: part - 1 }, "split.count": { u16: 3 }, "split.tensors.count": { i32: 3 } };
    const metadata = part === 1 ? { "general.architecture": "llama", ...split } : split;
    await writeGguf(path(partName(part)), { metadata, tensors, ...changes[part] });
  }
}

test("opening the first part opens all parts", () =>
  withFolder(async (path) => {
    await writeParts(path);
    const gguf = openGguf(path(partName(1)));
    expect(gguf.path).toBe(path(partName(1)));
    expect(gguf.metadata.get("general.architecture")).toBe("llama");
    expect([...gguf.tensors.values()].map(({ name, shard }) => `${name} in ${shard}`)).toEqual([
      "t.1 in 0",
      "t.2 in 1",
      "t.3 in 2",
    ]);
    for (const part of [1, 2, 3]) expect(gguf.read(`t.${part}`)).toEqual(new Uint8Array(32).fill(part));
    const sizes = [1, 2, 3].map((part) => Bun.file(path(partName(part))).size);
    expect(gguf.fileBytes).toBe(sizes.reduce((a, b) => a + b));
    gguf.close();
    expect(() => gguf.read("t.3")).toThrow("read after close");
  }));

test("opening another part is an error that names the first", () =>
  withFolder(async (path) => {
    await writeParts(path);
    const first = path(partName(1));
    expect(failure(() => openGguf(path(partName(2))))).toBe(
      `bad_file: ${path(partName(2))}: this is part 2 of 3 of a split model; open '${first}' instead`,
    );
  }));

test("a missing part is an error that names it", () =>
  withFolder(async (path) => {
    await writeParts(path);
    await rm(path(partName(3)));
    expect(failure(() => openGguf(path(partName(1))))).toBe(
      `bad_file: ${path(partName(3))}: expected part 3 of 3 of a split model, got no such file`,
    );
  }));

test("a part under another part's name is an error that names it", () =>
  withFolder(async (path) => {
    await writeParts(path);
    await rename(path(partName(3)), path(partName(2)));
    await writeParts((name) => path(name === partName(3) ? name : `other-${name}`));
    expect(failure(() => openGguf(path(partName(1))))).toEndWith(
      `${partName(2)}: expected part 2 of 3, got part 3 of 3`,
    );
  }));

test("a part of no split, of another split or broken is an error that names it", () =>
  withFolder(async (path) => {
    await writeParts(path, { 2: { metadata: {} } });
    expect(failure(() => openGguf(path(partName(1))))).toEndWith(
      `${partName(2)}: expected part 2 of 3, got part 1 of 1`,
    );
    await writeParts(path, { 2: { metadata: { "split.no": { u16: 1 }, "split.count": { u16: 4 } } } });
    expect(failure(() => openGguf(path(partName(1))))).toEndWith(
      `${partName(2)}: expected part 2 of 3, got part 2 of 4`,
    );
    await Bun.write(path(partName(2)), "GGUF");
    expect(failure(() => openGguf(path(partName(1))))).toContain(`${partName(2)}: version at byte 4`);
  }));

test("an error about a key of another type names the key's file", () =>
  withFolder(async (path) => {
    for (const [part, split] of [
      [1, { "split.count": "x" }],
      [1, { "split.no": "x", "split.count": { u16: 3 } }],
      [2, { "split.no": "x" }],
      [2, { "split.no": { u16: 1 }, "split.count": "x" }],
      [1, { "split.no": { u16: 0 }, "split.count": { u16: 3 }, "split.tensors.count": "x" }],
    ] as const) {
      await rm(path("."), { recursive: true });
      await mkdir(path("."));
      await writeParts(path, { [part]: { metadata: { "general.architecture": "llama", ...split } } });
      const key = Object.keys(split).find((name) => (split as Record<string, unknown>)[name] === "x");
      const said = `${path(partName(part))}: metadata '${key}': expected a number, got the string "x"`;
      expect(failure(() => openGguf(path(partName(1))))).toBe(`bad_file: ${said}`);
      await expect(readHeader(path(partName(1)))).rejects.toThrow(said);
    }
  }));

test("a first part whose name does not end in its number and count is refused", () =>
  withFolder(async (path) => {
    await writeParts(path);
    await rename(path(partName(1)), path("model.gguf"));
    expect(failure(() => openGguf(path("model.gguf")))).toEndWith(
      "expected a name that ends in '-00001-of-00003.gguf', to find the other parts by, got another",
    );
    await rename(path("model.gguf"), path("m-00001-of-00004.gguf"));
    expect(failure(() => openGguf(path("m-00001-of-00004.gguf")))).toContain("'-00001-of-00003.gguf'");
  }));

test("repeated tensors and a wrong tensor count are refused", () =>
  withFolder(async (path) => {
    const twin = [{ name: "t.1", shape: [8], quant: quants.f32, data: new Uint8Array(32) }];
    await writeParts(path, { 3: { tensors: twin } });
    expect(failure(() => openGguf(path(partName(1))))).toEndWith(
      `${partName(3)}: tensor 't.1' is also in an earlier part`,
    );
    await writeParts(path, { 3: { tensors: [] } });
    expect(failure(() => openGguf(path(partName(1))))).toEndWith("'split.tensors.count': expected 3, got 2 in 3 parts");
  }));

test("a count above 1024 or no whole number is refused before other parts are opened", () =>
  withFolder(async (path) => {
    for (const [count, message] of [
      [{ u16: 65_535 }, "expected a whole number from 0 to 1024, got 65535"],
      [{ f32: 2.5 }, "expected a whole number from 0 to 1024, got 2.5"],
      ["3", 'expected a number, got the string "3"'],
    ] as const) {
      await writeGguf(path(partName(1)), { metadata: { "split.count": count, "split.no": { u16: 0 } }, tensors: [] });
      expect(failure(() => openGguf(path(partName(1))))).toEndWith(message);
    }
  }));

test("a split of one part may have any name", () =>
  withFolder(async (path) => {
    const metadata = { "split.no": { u16: 0 }, "split.count": { u16: 1 }, "split.tensors.count": { i32: 0 } };
    await writeGguf(path("any name.gguf"), { metadata, tensors: [] });
    openGguf(path("any name.gguf")).close();
  }));
