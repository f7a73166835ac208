import { afterEach, beforeEach, expect, test } from "bun:test";
import { createPublicKey, verify } from "node:crypto";
import { readFile, rm, stat, writeFile } from "node:fs/promises";
import { join } from "node:path";
import { ensureKey, parseKey, readKey } from "../../../src/library/registry/key.ts";
import { tempFolder } from "../fixture.ts";

let home: string;
beforeEach(async () => void (home = await tempFolder()));
afterEach(() => rm(home, { recursive: true }));
const path = () => join(home, "id_ed25519");

test("the first start makes a key that only its owner can read, and later starts keep it", async () => {
  await ensureKey(home);
  const text = await readFile(path(), "utf8");
  expect((await stat(path())).mode & 0o777).toBe(0o600);
  expect(text).toMatch(
    /^-----BEGIN OPENSSH PRIVATE KEY-----\n([A-Za-z0-9+/=]{1,70}\n)+-----END OPENSSH PRIVATE KEY-----\n$/,
  );
  expect(await readFile(`${path()}.pub`, "utf8")).toBe(`ssh-ed25519 ${(await readKey(home)).publicKey}\n`);
  await ensureKey(home);
  expect(await readFile(path(), "utf8")).toBe(text);
});

test("a signature can be checked with the public key", async () => {
  await ensureKey(home);
  const { publicKey, sign } = await readKey(home);
  const raw = Buffer.from(publicKey, "base64").subarray(-32);
  const key = createPublicKey({
    key: Buffer.concat([Buffer.from("302a300506032b6570032100", "hex"), raw]),
    format: "der",
    type: "spki",
  });
  expect(verify(null, Buffer.from("text"), key, Buffer.from(sign("text"), "base64"))).toBe(true);
  expect(verify(null, Buffer.from("texts"), key, Buffer.from(sign("text"), "base64"))).toBe(false);
});

const hasSshKeygen = Bun.which("ssh-keygen") !== null;

test.skipIf(!hasSshKeygen)(
  "a key from ssh-keygen is used, and a public file that does not match it is replaced",
  async () => {
    await Bun.spawn(["ssh-keygen", "-q", "-t", "ed25519", "-N", "", "-C", "somebody", "-f", path()]).exited;
    const [text, line] = [await readFile(path(), "utf8"), await readFile(`${path()}.pub`, "utf8")];
    await ensureKey(home);
    expect((await readKey(home)).publicKey).toBe(line.split(" ")[1]!);
    expect(await readFile(`${path()}.pub`, "utf8")).toBe(line);
    await writeFile(`${path()}.pub`, "ssh-ed25519 AAAA somebody\n");
    await ensureKey(home);
    expect(await readFile(`${path()}.pub`, "utf8")).toBe(line.replace(" somebody", ""));
    expect(await readFile(path(), "utf8")).toBe(text);
  },
);

test.skipIf(!hasSshKeygen)("ssh-keygen reads the key", async () => {
  await ensureKey(home);
  const child = Bun.spawn(["ssh-keygen", "-y", "-f", path()], { stdout: "pipe" });
  const text = await new Response(child.stdout).text();
  expect(text.trim()).toBe((await readFile(`${path()}.pub`, "utf8")).trim());
});

test("an invalid key is an error that names the file", async () => {
  await ensureKey(home);
  const text = await readFile(path(), "utf8");
  const lines = text.trim().split("\n");
  const body = Buffer.from(lines.slice(1, -1).join(""), "base64");
  const wrapped = (bytes: Uint8Array) => [lines[0], Buffer.from(bytes).toString("base64"), lines.at(-1)].join("\n");
  const refused = ["", "not a key", text.replace("OPENSSH", "RSA"), wrapped(Buffer.from("openssh-key-v1\0"))];
  for (const wrong of refused) expect(() => parseKey(wrong, "/k")).toThrow(/^\/k: expected /);
  for (let length = 0; length < 200; length += 7) {
    expect(() => parseKey(wrapped(body.subarray(0, length)), "/k")).toThrow(/^\/k: expected /);
  }
  const locked = Buffer.from(body);
  locked.write("aes2", 19, "latin1");
  expect(() => parseKey(wrapped(locked), "/k")).toThrow("/k: expected a key without a passphrase");
});
