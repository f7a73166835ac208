import { expect, test } from "bun:test";
import { mkdtempSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { newKey, publicKeyOf, sign } from "../../../packaging/release/sign.ts";
import { parsePublicKey, verify } from "../../../src/cli/update/minisign.ts";
import { afterTest } from "../../cleanups.ts";

const FILE = Buffer.from("a file\n");
const key = await newKey();
const trusted = parsePublicKey(key.publicKey);
const signature = await sign(FILE, key.secret, "hearth 1.2.3");

test("a signature is verified with its trusted comment", async () => {
  expect(await verify(FILE, signature, trusted)).toBe("hearth 1.2.3");
  expect(publicKeyOf(key.secret)).toBe(key.publicKey);
});

// made with: minisign -G -W; printf 'a file\n' >f; minisign -Sm f -t 'from minisign'
test("a signature made by minisign is verified", async () => {
  const made = parsePublicKey("RWS65DuDXioM7OPH0Ia9fVda5plBltjItWHP2VWMG7YnZPiaMoXirVYK");
  const text =
    "untrusted comment: signature from minisign secret key\nRUS65DuDXioM7P2LFfjkUs650Lj2VVNkfj+EE1oQKGIHmfdDQqzsTGBjCqFgpRmsPOGYikKs3Egxyo5XzZXpWjFkmYFtr96x9AY=\ntrusted comment: from minisign\nIwfu/ddIJCq3bvIeuGW/+yWN+915d5VeBYtUfEEIhePieZfhB4x62VwQtGFvX0d2pMSsQ+P5DOjy2gtMkxEJBA==\n";
  expect(await verify(FILE, text, made)).toBe("from minisign");
});

const lines = signature.split("\n");
const withLine = (index: number, line: string): string => lines.with(index, line).join("\n");
const flipped = (line: string, at: number): string => {
  const bytes = Buffer.from(line, "base64");
  bytes[at]! ^= 1;
  return bytes.toString("base64");
};

test.each([
  ["another file", Buffer.from("a fil\n"), signature, "does not belong to this file"],
  ["a flipped bit of the signature", FILE, withLine(1, flipped(lines[1]!, 40)), "does not belong to this file"],
  ["a changed comment", FILE, withLine(2, "trusted comment: hearth 9.9.9"), "does not belong to this file"],
  ["another key's number", FILE, withLine(1, flipped(lines[1]!, 5)), "another key than this program trusts"],
  ["the old kind", FILE, withLine(1, flipped(lines[1]!, 1)), "of another kind: expected 'ED'"],
  ["no trusted comment", FILE, withLine(2, "hearth 1.2.3"), "the signature is damaged"],
  ["a page", FILE, "<html></html>", "the signature is damaged"],
  ["nothing", FILE, "", "the signature is damaged"],
])("%s is refused", async (_, file, text, says) => {
  await expect(verify(file, text, trusted)).rejects.toThrow(says);
});

test("another key with the same number is refused", async () => {
  const other = parsePublicKey((await newKey()).publicKey);
  await expect(verify(FILE, signature, { id: trusted.id, bytes: other.bytes })).rejects.toThrow("does not belong");
});

test.each(["", "RWabc", `${key.publicKey}AAAA`, "x".repeat(56)])("%p is not a public key", (text) => {
  expect(() => parsePublicKey(text)).toThrow("expected a public key of minisign");
});

test.skipIf(!Bun.which("minisign"))("minisign accepts our signature", () => {
  const folder = mkdtempSync(join(tmpdir(), "hearth-minisign-"));
  afterTest(() => rmSync(folder, { recursive: true }));
  writeFileSync(join(folder, "f"), FILE);
  writeFileSync(join(folder, "f.minisig"), signature);
  const checked = Bun.spawnSync(["minisign", "-Vm", join(folder, "f"), "-P", key.publicKey]);
  expect(checked.stdout.toString()).toContain("Signature and comment signature verified");
});
