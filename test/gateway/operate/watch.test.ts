/** The changes of its files that a watch notices: real files, real polling. */
import { afterEach, expect, test } from "bun:test";
import { mkdtempSync, renameSync, rmSync, symlinkSync, utimesSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { readDocument } from "../../../src/base/config/document.ts";
import { makeSnapshot } from "../../../src/gateway/operate/snapshot.ts";
import { ConfigWatch } from "../../../src/gateway/operate/watch.ts";
import { eventually } from "../../e2e/hearth.ts";
import { silent } from "../hooks/ingress/fixtures.ts";

const WAIT_MS = 60_000;
const FIRST = "hook-token-first-of-32-letters--";
const SECOND = "hook-token-second-of-32-letters-";

const cleanups: (() => unknown)[] = [];
afterEach(() => cleanups.splice(0).forEach((cleanup) => cleanup()));

function bench() {
  const folder = mkdtempSync(join(tmpdir(), "hearth-watch-"));
  cleanups.push(() => rmSync(folder, { recursive: true, force: true }));
  const file = join(folder, "hearth.json5");
  const errors: unknown[] = [];
  const reads: true[] = [];
  const read = () => {
    reads.push(true);
    const document = readDocument(file, {});
    return { document, snapshot: makeSnapshot(document, { folder, apiKeys: [] }) };
  };
  const write = (config: object, name = "hearth.json5"): void =>
    writeFileSync(join(folder, name), JSON.stringify(config));
  const watch = (first: ReturnType<typeof read>): ConfigWatch => {
    const log = { ...silent, error: (_: string, fields?: object) => void errors.push(fields) };
    const made = new ConfigWatch({ first, read, log });
    cleanups.push(() => made.close());
    return made;
  };
  return { folder, file, read, reads, write, watch, errors };
}

const withToken = (token: string) => ({ hooks: { enabled: true, token } });
const becomes = (watch: ConfigWatch, token: string): Promise<boolean> =>
  eventually(() => watch.snapshot().hooks.token === token, WAIT_MS);

test("a change between reading and watching the files is noticed", async () => {
  const { read, write, watch } = bench();
  write(withToken(FIRST));
  const first = read();
  write(withToken(SECOND));
  expect(await becomes(watch(first), SECOND)).toBe(true);
}, 120_000);

test("a file overwritten in place with the same size and time is read again", async () => {
  const { file, read, reads, write, watch } = bench();
  const writeThen = (token: string): void => {
    write(withToken(token));
    utimesSync(file, 1e9, 1e9);
  };
  writeThen(FIRST);
  const watched = watch(read());
  expect(await eventually(() => reads.length === 2, WAIT_MS)).toBe(true); // from here on it knows the file's stamp
  writeThen(SECOND);
  expect(await becomes(watched, SECOND)).toBe(true);
}, 120_000);

test("an include that is created or repaired after the file that names it is read then", async () => {
  const { folder, read, write, watch, errors } = bench();
  write(withToken(FIRST));
  const watched = watch(read());
  write({ hooks: { $include: "./hooks.json5" } });
  expect(await eventually(() => errors.length === 1, WAIT_MS)).toBe(true);
  expect(errors[0]).toEqual({ error: expect.stringContaining("cannot read './hooks.json5': ENOENT") });
  writeFileSync(join(folder, "hooks.json5"), "{ enabled: 'maybe' }");
  expect(await eventually(() => errors.length === 2, WAIT_MS)).toBe(true);
  expect(errors[1]).toEqual({ error: expect.stringContaining("hooks.json5:1: hooks.enabled") });
  write(withToken(SECOND).hooks, "hooks.json5");
  expect(await becomes(watched, SECOND)).toBe(true);
  expect(errors.length).toBe(2); // checked often, reported once
}, 240_000);

test.skipIf(process.platform === "win32")(
  "a link that is atomically replaced is followed to its new file",
  async () => {
    const { folder, file, read, write, watch } = bench();
    write(withToken(FIRST), "one.json5");
    write(withToken(SECOND), "two.json5");
    symlinkSync("one.json5", file);
    const watched = watch(read());
    symlinkSync("two.json5", join(folder, "next"));
    renameSync(join(folder, "next"), file);
    expect(await becomes(watched, SECOND)).toBe(true);
  },
  120_000,
);
