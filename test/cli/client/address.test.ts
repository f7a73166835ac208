import { describe, expect, test } from "bun:test";
import { mkdtempSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { clientSettings } from "../../../src/cli/client/address.ts";

const urlOf = (env: Record<string, string>): string => clientSettings({ env, flags: {}, home: "/nowhere" }).server.url;

describe.each(["HEARTH_HOST", "OLLAMA_HOST"])("the server's address from %s", (name) => {
  test.each([
    ["box", "http://box:11434"],
    ["0.0.0.0:8080", "http://127.0.0.1:8080"],
    ["https://box", "https://box"],
    ["https://box:8443/", "https://box:8443"],
    ["http://box/models/", "http://box/models"],
    // quoted as in files of variables: the server accepts it, too
    ['"https://box"', "https://box"],
    ["'http://box/models' ", "http://box/models"],
    ["HTTPS://box", "HTTPS://box"],
  ])("%p is %p", (value, url) => {
    expect(urlOf({ [name]: value })).toBe(url);
  });
});

test("an empty HEARTH_HOST is ignored, and OLLAMA_HOST is used", () => {
  expect(urlOf({ HEARTH_HOST: " ", OLLAMA_HOST: "https://box" })).toBe("https://box");
});

test("HEARTH_TLS_CERTIFICATE makes the local server's address https, and is not read for another address", () => {
  const env = { HEARTH_TLS_CERTIFICATE: "/nowhere/tls.pem" };
  expect(() => urlOf(env)).toThrow("tls.certificate: cannot read '/nowhere/tls.pem'");
  expect(urlOf({ HEARTH_TLS_CERTIFICATE: import.meta.path, HEARTH_HOST: ":8443" })).toBe("https://127.0.0.1:8443");
  expect(urlOf({ ...env, HEARTH_HOST: "https://box" })).toBe("https://box");
});

test("the client trusts only the first certificate of the file, not one signed by its authority", () => {
  const folder = mkdtempSync(join(tmpdir(), "hearth-pin-"));
  const pem = (text: string): string => `-----BEGIN CERTIFICATE-----\n${btoa(text)}\n-----END CERTIFICATE-----\n`;
  const path = join(folder, "chain.pem");
  writeFileSync(path, pem("own") + pem("authority"));
  const { tls } = clientSettings({ env: { HEARTH_TLS_CERTIFICATE: path }, flags: {}, home: folder }).server;
  const checked = (text: string) => tls!.checkServerIdentity("127.0.0.1", { raw: Buffer.from(text) });
  expect(checked("own")).toBeUndefined();
  for (const other of ["authority", "else", ""]) expect(checked(other)).toBeInstanceOf(Error);
  rmSync(folder, { recursive: true });
});
