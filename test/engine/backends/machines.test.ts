/** The table of docs/platforms.md: which backend runs a model on which machine. */
import { afterAll, beforeAll, expect, test } from "bun:test";
import { mkdtemp, rm } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { BACKEND_CHOICES } from "../../../src/base/backends.ts";
import { checkBackend } from "../../../src/engine/backends/index.ts";
import { choiceOn, FILES, MACHINES, makeTable, programOf, TABLE } from "./machines.ts";

let folder = "";
beforeAll(async () => void (folder = await mkdtemp(join(tmpdir(), "hearth-machines-"))));
afterAll(() => rm(folder, { recursive: true }));

/** A table's cells, without the spaces that align its columns. */
const cells = (text: string): string => text.replace(/ +/g, " ").replace(/-{2,}/g, "-").trim();

test("docs/platforms.md has the table that the choice of a backend gives", async () => {
  const table = await makeTable(join(folder, "model.gguf"));
  const page = await Bun.file(join(import.meta.dir, "../../../docs/platforms.md")).text();
  const written = TABLE.exec(page)?.[0] ?? "";
  expect(cells(written), "run `bun bench/platforms-table.ts`").toBe(cells(table));
  expect([FILES.length, MACHINES.length]).toEqual([12, 6]);
});

test("a file too large for WebAssembly's address space runs on another backend", async () => {
  const failing = MACHINES.find(({ untrusted }) => untrusted)!;
  const [fits, tooLarge] = [FILES[0]!, FILES.find(({ name }) => name.startsWith("Llama"))!];
  const backendOf = async (file: typeof fits) =>
    (await choiceOn(failing, await programOf(file, join(folder, "model.gguf")))).backend;
  expect(await backendOf(fits)).toBe("wasm");
  expect(await backendOf(tooLarge)).toBe("onnx");
});

test("an unknown backend is refused with the list of backends in the order of trial", () => {
  expect(() => checkBackend("none")).toThrow(`expected auto or one of ${BACKEND_CHOICES.slice(1).join(", ")}`);
});
