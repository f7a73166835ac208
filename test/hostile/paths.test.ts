/** Names, digests and paths that try to leave their folder: refused by every endpoint, with nothing read or written. */
import { afterAll, afterEach, beforeAll, expect, setDefaultTimeout, test } from "bun:test";
import { mkdirSync, mkdtempSync, readdirSync, rmSync, symlinkSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { f32 } from "../../src/engine/formats/quant/f32.ts";
import { startHearth, type Hearth } from "../e2e/hearth.ts";
import { encodeGguf } from "../engine/formats/gguf/fixture.ts";

setDefaultTimeout(60_000);

const SECRET = "the secret of this machine";

let home = "";
let hearth: Hearth;
let before: string[] = [];
const allowed = (...names: string[]): string => join(home, "allowed", ...names);
const outside = (...names: string[]): string => join(home, "outside", ...names);
const filesOf = (): string[] => readdirSync(home, { recursive: true, encoding: "utf8" }).sort();

/** A part of a split model, with one tensor. */
const part = (no: number): Uint8Array =>
  encodeGguf({
    metadata: {
      ...(no === 0 ? { "general.architecture": "llama", "split.tensors.count": { u32: 2 } } : {}),
      "split.no": { u16: no },
      "split.count": { u16: 2 },
    },
    tensors: [{ name: `t${no}`, shape: [8], quant: f32, data: new Uint8Array(32) }],
  });

beforeAll(async () => {
  home = mkdtempSync(join(tmpdir(), "hearth-paths-"));
  for (const folder of [allowed(), outside(), allowed("tensors")]) mkdirSync(folder);
  writeFileSync(outside("secret"), SECRET);
  writeFileSync(outside("Modelfile"), `FROM hearth\nSYSTEM ${SECRET}`);
  writeFileSync(outside("split-00002-of-00002.gguf"), part(1));
  writeFileSync(allowed("split-00001-of-00002.gguf"), part(0));
  symlinkSync(outside("split-00002-of-00002.gguf"), allowed("split-00002-of-00002.gguf"));
  symlinkSync(outside("secret"), allowed("link.gguf"));
  symlinkSync(outside("Modelfile"), allowed("Modelfile"));
  symlinkSync(outside(), allowed("up"));
  symlinkSync(outside("secret"), allowed("tensors", "model.safetensors"));
  hearth = await startHearth({ home, env: { HEARTH_IMPORT_DIRS: allowed() } });
  before = filesOf();
});
afterAll(async () => {
  await hearth.stop();
  rmSync(home, { recursive: true });
});
afterEach(() => {
  expect(filesOf()).toEqual(before);
  expect(hearth.log().filter((line) => line.includes('"bug"'))).toEqual([]);
});

async function call(method: string, path: string, body?: object): Promise<{ status: number; text: string }> {
  const response = await fetch(hearth.url + path, { method, ...(body ? { body: JSON.stringify(body) } : {}) });
  const text = await response.text();
  expect([path, body, text.includes(SECRET) || text.includes("root:")]).toEqual([path, body, false]);
  return { status: response.status, text };
}

const NAMES = [
  "../../../outside/secret",
  "/etc/passwd",
  "..",
  ".",
  "a/..",
  "a/../b",
  "../hearth",
  "hearth:../../x",
  "hearth:..",
  "..:..",
  "a/b/../../c",
  "..\\..\\hearth",
  "C:\\hearth",
  "hearth\0",
  "hearth\0.txt",
  "%2e%2e/hearth",
  "a:b:c",
  "file:///etc/passwd",
  "http://../../hearth",
  `${"../".repeat(40)}etc/passwd`,
  "．．/hearth", // dots of full width
];

const REQUESTS: readonly [method: string, path: string, field: string, more?: object][] = [
  ["POST", "/api/generate", "model"],
  ["POST", "/api/chat", "model"],
  ["POST", "/api/embed", "model", { input: "x" }],
  ["POST", "/api/embeddings", "model"],
  ["POST", "/api/tokenize", "model", { content: "x" }],
  ["POST", "/api/detokenize", "model", { tokens: [1] }],
  ["POST", "/api/show", "model"],
  ["POST", "/api/show", "name"],
  ["DELETE", "/api/delete", "model"],
  ["POST", "/api/copy", "source", { destination: "x" }],
  ["POST", "/api/copy", "destination", { source: "hearth" }],
  ["POST", "/api/create", "model", { from: "hearth", stream: false }],
  ["POST", "/api/create", "from", { model: "x", stream: false }],
  ["POST", "/api/pull", "model", { insecure: true, stream: false }],
  ["POST", "/api/push", "model", { insecure: true, stream: false }],
  ["POST", "/v1/chat/completions", "model", { messages: [{ role: "user", content: "x" }] }],
  ["POST", "/v1/completions", "model", { prompt: "x" }],
  ["POST", "/v1/embeddings", "model", { input: "x" }],
  ["POST", "/v1/responses", "model", { input: "x" }],
  ["POST", "/v1/messages", "model", { max_tokens: 1, messages: [{ role: "user", content: "x" }] }],
];

test.each(REQUESTS)("%s %s: a path as %s is refused", async (method, path, field, more = {}) => {
  for (const name of NAMES) {
    const { status } = await call(method, path, { ...more, [field]: name });
    expect([name, status]).toEqual([name, 400]);
  }
});

test("GET /v1/models/NAME refuses a path as the name", async () => {
  for (const name of NAMES.filter((each) => !/^\.\.?$/.test(each))) {
    // clients resolve it before they send it
    const { status } = await call("GET", `/v1/models/${encodeURIComponent(name)}`);
    expect([name, status === 400 || status === 404]).toEqual([name, true]);
  }
});

const DIGESTS = [
  "..%2F..%2Foutside%2Fsecret",
  "sha256:..%2F..%2F..%2Foutside%2Fsecret",
  `sha256-..%2F${"a".repeat(61)}`,
  `sha256:${"a".repeat(64)}%2F..`,
  `sha256:${"a".repeat(64)}%00`,
  `sha512:${"a".repeat(64)}`,
];

test.each(DIGESTS)("HEAD and POST /api/blobs/%s get 400", async (digest) => {
  for (const method of ["HEAD", "POST"]) {
    expect([method, (await call(method, `/api/blobs/${digest}`)).status]).toEqual([method, 400]);
  }
});

const DIGEST = `sha256:${"a".repeat(64)}`;
const KEYS = [
  "../x.gguf",
  "/x.gguf",
  "a/../../x.gguf",
  "a\\..\\..\\x.gguf",
  "C:/x.gguf",
  "x\0.gguf",
  "./x",
  "a//b",
  "",
];

test.each(["files", "adapters"])("POST /api/create: paths as keys or digests of %s are refused", async (field) => {
  for (const key of KEYS) {
    const { status, text } = await call("POST", "/api/create", {
      model: "x",
      from: "hearth",
      [field]: { [key]: DIGEST },
    });
    expect([key, status, text]).toEqual([key, 400, '{"error":"file path must be relative"}']);
  }
  for (const digest of DIGESTS.map(decodeURIComponent)) {
    const body = { model: "x", from: "hearth", [field]: { "x.gguf": digest } };
    expect([digest, (await call("POST", "/api/create", body)).status]).toEqual([digest, 400]);
  }
});

test("POST /api/create: FROM and ADAPTER of a Modelfile read no file outside of the allowed folders", async () => {
  const paths = [
    outside("secret"),
    "/etc/passwd",
    "/proc/self/environ",
    allowed("..", "outside", "secret"),
    allowed("link.gguf"),
    allowed("up", "secret"),
    allowed("tensors"), // a folder in which a link leads out
    `${allowed()}x/secret`,
  ];
  for (const path of paths) {
    for (const modelfile of [`FROM ${path}`, `FROM hearth\nADAPTER ${path}`]) {
      const { status } = await call("POST", "/api/create", { model: "x", modelfile, stream: false });
      expect([modelfile, status]).toEqual([modelfile, 403]);
    }
  }
});

test("POST /api/create: the further parts of a split model must lie in the allowed folders", async () => {
  const modelfile = `FROM ${allowed("split-00001-of-00002.gguf")}`;
  const { status, text } = await call("POST", "/api/create", { model: "x", modelfile, stream: false });
  expect([status, text]).toEqual([403, expect.stringContaining("outside the folders that this server may read")]);
});

test("POST /api/create: path reads no Modelfile outside of the allowed folders", async () => {
  const paths = [outside("Modelfile"), allowed("Modelfile"), allowed("up", "Modelfile"), "/etc/passwd", "../Modelfile"];
  for (const path of [...paths, allowed("..", "outside", "Modelfile")]) {
    const { status } = await call("POST", "/api/create", { model: "x", path, stream: false });
    expect([path, status]).toEqual([path, 403]);
  }
});

test("GET /docs/FILE serves no file outside of its folder", async () => {
  for (const file of ["..%2Fpackage.json", "..%2F..%2F..%2Fetc%2Fpasswd", "package.json", "swagger-ui.css%00"]) {
    expect([file, (await call("GET", `/docs/${file}`)).status]).toEqual([file, 404]);
  }
});
