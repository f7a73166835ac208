/** docs/senders.md: its mappings accept the requests of its commands, and no request signed with another key. */
import { mkdtempSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { generateKeyPairSync, type KeyObject } from "node:crypto";
import { afterAll, describe, expect, test } from "bun:test";
import { JSON5 } from "bun";
import { hooksSchema, type SignatureConfig } from "../../src/gateway/hooks/config.ts";
import { signatureSchemes, signRequest, verifySignature } from "../../src/gateway/hooks/ingress/signatures/index.ts";
import { startHooks } from "./hooks-api.ts";

const text = await Bun.file(join(import.meta.dir, "../../docs/senders.md")).text();
const block = (language: string): string => new RegExp(`\`\`\`${language}\n(.*?)\`\`\``, "s").exec(text)?.[1] ?? "";
const list = block("js").trim().replace(/;$/, "");
const [prelude = "", ...commands] = block("sh").trim().split("\n\n");

const folder = mkdtempSync(join(tmpdir(), "hearth-senders-"));
afterAll(() => rmSync(folder, { recursive: true }));

const ec = generateKeyPairSync("ec", { namedCurve: "P-256" });
const ed = generateKeyPairSync("ed25519");
const open = (key: KeyObject): string => key.export({ format: "der", type: "spki" }).toString("base64");
const pem = (key: KeyObject): string => key.export({ format: "pem", type: "pkcs8" }) as string;
const write = (pair: { ec: KeyObject; ed: KeyObject }): void => {
  writeFileSync(join(folder, "ec.pem"), pem(pair.ec));
  writeFileSync(join(folder, "ed.pem"), pem(pair.ed));
};

const KEY = "a-secret-of-32-bytes-0123456789a";
const keyForms = (key: string): Record<string, string> => ({
  KEY: key,
  HEX_KEY: Buffer.from(key).toString("hex"),
  BASE64_KEY: Buffer.from(key).toString("base64"),
});
const values: Record<string, string> = {
  ...keyForms(KEY),
  EC_PUBLIC_KEY: open(ec.publicKey),
  ED_PUBLIC_KEY: open(ed.publicKey).slice(-44),
};
const mappings = (JSON5.parse(list.replace(/\$\{(\w+)\}/g, (_, name: string) => values[name] ?? name)) as object[]).map(
  (mapping) => ({ ...mapping, action: "wake", textTemplate: "{{ payload }}" }),
);

async function run(command: string, env: Record<string, string>): Promise<string> {
  const child = Bun.spawn(["bash", "-c", `${prelude}\n${command}`], {
    cwd: folder,
    env: { PATH: process.env["PATH"] ?? "", BODY: '{"id":"e1","event":{"id":"e1"},"data":{"id":"e1"}}', ...env },
    stdout: "pipe",
    stderr: "pipe",
  });
  const [out, problems] = await Promise.all([child.stdout.text(), child.stderr.text()]);
  expect(problems).toBe("");
  return out;
}

describe("worked examples", () => {
  test("every mapping has a command", () => expect(commands).toHaveLength(mappings.length));

  test("each command is accepted once, and refused with another key", async () => {
    const api = await startHooks({ hooks: { mappings } });
    const HOOKS = `${api.url}/hooks`;
    for (const command of commands) {
      write({ ec: ec.privateKey, ed: ed.privateKey });
      const answer = await run(command, { ...keyForms(KEY), HOOKS });
      expect([command, JSON.parse(answer)]).toMatchObject([command, { ok: true }]);
      const other = generateKeyPairSync("ed25519").privateKey;
      write({ ec: generateKeyPairSync("ec", { namedCurve: "P-256" }).privateKey, ed: other });
      const wrong = await run(command, { ...keyForms("another-secret-of-32-bytes-01234"), HOOKS });
      expect([command, JSON.parse(wrong)]).toMatchObject([command, { ok: false, code: "unauthorized" }]);
    }
    expect(await api.world.actions()).toHaveLength(mappings.length);
  }, 60_000);

  test("a refused sender of HTTP Basic gets a Basic challenge, and others a Bearer challenge", async () => {
    const api = await startHooks({ hooks: { mappings } });
    const asked = async (path: string) => (await api.send(path, {})).headers.get("www-authenticate");
    expect([await asked("/hooks/basic"), await asked("/hooks/own")]).toEqual([
      'Basic realm="hooks"',
      'Bearer realm="hooks"',
    ]);
  });
});

describe("the tables", () => {
  test("every signature scheme has a row", () => {
    const [, section = ""] = text.split("## How senders prove who they are");
    const rows = section
      .slice(0, section.indexOf("###"))
      .split("\n")
      .filter((line) => line.startsWith("| `"));
    const named = rows.flatMap((row) =>
      [...(row.split("|")[1] ?? "").matchAll(/`([\w-]+)`/g)].map(([, name]) => name!),
    );
    expect(named.toSorted()).toEqual(Object.keys(signatureSchemes).toSorted());
  });

  const described = [...text.matchAll(/^\| (\w[\w, ]*?) +\| `(\{ scheme.*?\})` +\|$/gm)].map(([, name, auth]) => [
    name!,
    auth!,
  ]);
  test("senders without a scheme of their own have settings", () => expect(described.length).toBeGreaterThan(8));
  test.each(described)("the settings for %s are valid, and verify a request signed with them", (_, source) => {
    const auth = JSON5.parse(source.replace("secrets", 'secrets: "x"')) as object;
    const config: SignatureConfig = hooksSchema.parse({ mappings: [{ auth }] }).mappings[0]!.auth!;
    const request = { rawBody: new TextEncoder().encode("{}"), url: "http://h/x", method: "POST", nowMs: 1.7e12 };
    const headers = signRequest(config, { ...request, headers: {}, id: "1" });
    expect(verifySignature(config, { ...request, headers })).toMatchObject({ ok: true });
  });
});
