import { afterAll, beforeAll, describe, expect, test } from "bun:test";
import { mkdir, mkdtemp, rm, writeFile } from "node:fs/promises";
import { homedir, tmpdir } from "node:os";
import { join, normalize } from "node:path";
import { mkdtempSync, rmSync, writeFileSync } from "node:fs";
import { readConfig, type Config } from "../../../src/base/config/config.ts";

let home: string;
beforeAll(async () => {
  home = await mkdtemp(join(tmpdir(), "hearth-config-"));
  await mkdir(join(home, ".hearth"));
});
afterAll(() => rm(home, { recursive: true }));

const withEnv = (env: Record<string, string>) => readConfig({ env, flags: {}, home: "/nowhere" });

async function withFile(text: string, rest: { env?: Record<string, string>; flags?: Record<string, string> } = {}) {
  const path = join(home, `${crypto.randomUUID()}.json5`);
  await writeFile(path, text);
  return { path, read: () => readConfig({ env: rest.env ?? {}, flags: { ...rest.flags, config: path }, home }) };
}

test("a path may begin with the user's folder, as where no shell replaces it", async () => {
  const { home: found, models } = withEnv({ HEARTH_HOME: "~/h" });
  expect([found, models].map(normalize)).toEqual([join(homedir(), "h"), join(homedir(), "h/models")]);
  const { read } = await withFile('{ models: { folder: "~/big disk" } }');
  expect(normalize(read().models)).toBe(join(homedir(), "big disk"));
  expect(withEnv({ HEARTH_MODELS: "~other/m" }).models).toBe("~other/m");
});

test("nothing set gives the documented defaults", () => {
  expect(withEnv({})).toEqual({
    home: "/nowhere/.hearth",
    host: { hostname: "127.0.0.1", port: 11434 },
    tls: undefined,
    models: "/nowhere/.hearth/models",
    backend: "auto",
    gpu: undefined,
    gpuMemory: "auto",
    snapshots: 4 * 2 ** 30,
    gpuKernels: "auto",
    simd: "auto",
    kvCacheType: "f16",
    numParallel: "auto",
    maxLoadedModels: "auto",
    maxQueue: 512,
    keepAliveMs: 300_000,
    contextLength: "auto",
    loadTimeoutMs: 300_000,
    stepTimeoutMs: 600_000,
    shutdownGraceMs: 10_000,
    drainDelayMs: 0,
    responses: { count: 10_000, bytes: 2 ** 30, ageMs: 30 * 24 * 3_600_000 },
    metricsDialect: "hearth",
    modelsUrl: undefined,
    modelsKey: undefined,
    modelsSource: undefined,
    modelsSourceLogin: undefined,
    modelsCacheBytes: Infinity,
    hosts: [],
    origins: [],
    apiKeys: [],
    importDirs: [],
    noPrune: false,
    otherStores: ["/nowhere/.ollama/models", "/usr/share/ollama/.ollama/models"],
    spareRunner: true,
    debug: false,
    tracing: undefined,
    metricExport: undefined,
    warnings: [],
  });
});

test("flags win over the environment, the environment over the file", async () => {
  const text = "{ backend: 'cpu', numParallel: 2, maxQueue: 7, /* comment */ apiKeys: ['a', 'b'], }";
  const { read } = await withFile(text, {
    env: { HEARTH_NUM_PARALLEL: "3", HEARTH_BACKEND: "wasm" },
    flags: { backend: "onnx" },
  });
  expect(read()).toMatchObject({ backend: "onnx", numParallel: 3, maxQueue: 7, apiKeys: ["a", "b"] });
});

test("a port alone is not taken for a host", () => {
  expect(() => withEnv({ HEARTH_HOST: "8080" })).toThrow("a port alone is ':11434', got '8080'");
});

test("HEARTH_CONFIG names the file, and without it hearth.json5 in the home folder is read if it exists", async () => {
  const { path } = await withFile("{ maxQueue: 9 }");
  expect(readConfig({ env: { HEARTH_CONFIG: path }, flags: {}, home }).maxQueue).toBe(9);
  await writeFile(join(home, ".hearth", "hearth.json5"), "{ maxQueue: 11 }");
  expect(readConfig({ env: {}, flags: {}, home }).maxQueue).toBe(11);
});

describe("variables of Ollama set the same settings", () => {
  test.each([
    [{ OLLAMA_HOST: "0.0.0.0:8080" }, { host: { hostname: "0.0.0.0", port: 8080 } }],
    [{ HEARTH_HOST: ":8080" }, { host: { hostname: "127.0.0.1", port: 8080 } }],
    [{ OLLAMA_HOST: "http://example.com" }, { host: { hostname: "example.com", port: 80 } }],
    [{ OLLAMA_HOST: "[::1]:99" }, { host: { hostname: "::1", port: 99 } }],
    [{ OLLAMA_HOST: "::1" }, { host: { hostname: "::1", port: 11434 } }],
    [{ OLLAMA_MODELS: ' "/data/models" ' }, { models: "/data/models" }],
    [{ HEARTH_MODELS: "/a", OLLAMA_MODELS: "/b" }, { models: "/a" }],
    [{ HEARTH_MODELS: "", OLLAMA_MODELS: "/b" }, { models: "/b" }],
    [{ HEARTH_HOME: "/h" }, { home: "/h", models: "/h/models" }],
    [{ OLLAMA_KEEP_ALIVE: "-1" }, { keepAliveMs: Infinity }],
    [{ OLLAMA_KEEP_ALIVE: "30" }, { keepAliveMs: 30_000 }],
    [{ OLLAMA_KEEP_ALIVE: "1h" }, { keepAliveMs: 3_600_000 }],
    [{ OLLAMA_LOAD_TIMEOUT: "0" }, { loadTimeoutMs: Infinity }],
    [{ OLLAMA_MAX_LOADED_MODELS: "0" }, { maxLoadedModels: "auto" }],
    [{ HEARTH_MAX_LOADED_MODELS: "2" }, { maxLoadedModels: 2 }],
    [{ OLLAMA_CONTEXT_LENGTH: "0" }, { contextLength: "auto" }],
    [
      { HEARTH_HOSTS: "models.example.org, *.svc.cluster.local" },
      { hosts: ["models.example.org", "*.svc.cluster.local"] },
    ],
    [{ OLLAMA_ORIGINS: "app://*, http://x.y," }, { origins: ["app://*", "http://x.y"] }],
    [{ OLLAMA_DEBUG: "1" }, { debug: true }],
  ])("%j", (env, expected) => expect(withEnv(env as Record<string, string>)).toMatchObject(expected));
});

describe("invalid values of Ollama's variables start the server with a warning", () => {
  const all = "0.0.0.0";
  test.each([
    [
      { OLLAMA_NUM_PARALLEL: "0" },
      { numParallel: "auto" },
      "expected 'auto' or a whole number from 1 to 256; the default is taken",
    ],
    [{ OLLAMA_MAX_QUEUE: "0" }, { maxQueue: 512 }, "expected a whole number from 1; the default is taken"],
    [{ OLLAMA_MAX_LOADED_MODELS: "some" }, { maxLoadedModels: "auto" }, "the default is taken"],
    [{ OLLAMA_CONTEXT_LENGTH: "long" }, { contextLength: "auto" }, "the default is taken"],
    [{ OLLAMA_KEEP_ALIVE: "abc" }, { keepAliveMs: 300_000 }, "expected a duration such as '5m'"],
    [{ OLLAMA_LOAD_TIMEOUT: "abc" }, { loadTimeoutMs: 300_000 }, "the default is taken"],
    [{ OLLAMA_DEBUG: "yes" }, { debug: false }, "OLLAMA_DEBUG='yes': expected true or false; the default is taken"],
    [{ OLLAMA_NOPRUNE: "yes" }, { noPrune: true }, "what is not false counts as true"],
    [{ OLLAMA_HOST: ":8080" }, { host: { hostname: all, port: 8080 } }, "listens on all interfaces"],
    [{ OLLAMA_HOST: ":66000" }, { host: { hostname: all, port: 11434 } }, "'66000' is not a port, so 11434 is used"],
    [{ OLLAMA_HOST: "1.2.3.4:" }, { host: { hostname: "1.2.3.4", port: 11434 } }, "'' is not a port"],
    [{ OLLAMA_HOST: "https://a.b/c" }, { host: { hostname: "a.b", port: 443 } }, "does not switch TLS on"],
  ])("%j", (env, expected, warning) => {
    const config = withEnv(env as Record<string, string>);
    expect(config).toMatchObject(expected as object);
    expect(config.warnings.join()).toContain(warning);
    expect(config.warnings.length).toBe(1);
  });

  test("values that Ollama also accepts give no warning", () => {
    const env = { OLLAMA_HOST: "[::1]:99", OLLAMA_KEEP_ALIVE: "-1", OLLAMA_NO_CLOUD: "1", OLLAMA_KV_CACHE_TYPE: "" };
    expect(withEnv(env).warnings).toEqual([]);
    expect(() => withEnv({ HEARTH_NUM_PARALLEL: "0", OLLAMA_NUM_PARALLEL: "3" })).toThrow("HEARTH_NUM_PARALLEL");
  });

  test("a variable of Ollama that has no effect gives a warning, with the reason if there is one", () => {
    expect(withEnv({ OLLAMA_NEW: "1", OLLAMA_FLASH_ATTENTION: "1", OTHER: "1" }).warnings).toEqual([
      "OLLAMA_FLASH_ATTENTION has no effect here: attention is always computed in tiles",
      "OLLAMA_NEW has no effect here",
    ]);
  });
});

test("stores of other servers are searched unless a variable names them or switches them off", () => {
  expect(withEnv({ HEARTH_MODELS: "/m" }).otherStores.length).toBe(2);
  expect(withEnv({ OLLAMA_MODELS: "/m" }).otherStores).toEqual([]);
  expect(withEnv({ OLLAMA_MODELS: "/m", HEARTH_MODELS: "/h" }).otherStores).toEqual(["/m"]);
  expect(withEnv({ OLLAMA_MODELS: "/m", HEARTH_MODELS: "/m" }).otherStores).toEqual([]);
  expect(withEnv({ HEARTH_OTHER_STORES: "false" }).otherStores).toEqual([]);
});

test("keys and values are kept as half floats, in 8 or in 4 bits; q4_1 becomes q4_0, with a warning", () => {
  expect(withEnv({}).kvCacheType).toBe("f16");
  expect(withEnv({ HEARTH_KV_CACHE_TYPE: "q8_0" }).kvCacheType).toBe("q8_0");
  expect(withEnv({ OLLAMA_KV_CACHE_TYPE: "q8_0" })).toMatchObject({ kvCacheType: "q8_0", warnings: [] });
  for (const name of ["HEARTH_KV_CACHE_TYPE", "OLLAMA_KV_CACHE_TYPE"]) {
    expect(withEnv({ [name]: "q4_0" })).toMatchObject({ kvCacheType: "q4_0", warnings: [] });
  }
  const narrow = withEnv({ OLLAMA_KV_CACHE_TYPE: "q4_1" });
  expect(narrow.kvCacheType).toBe("q4_0");
  expect(narrow.warnings.join()).toContain("so q4_0 is taken");
  expect(() => withEnv({ HEARTH_KV_CACHE_TYPE: "q4_1" })).toThrow("expected f16, q8_0, q4_0");
});

test("HEARTH_SNAPSHOTS is a number of bytes, or off", () => {
  const read = (text: string) => withEnv({ HEARTH_SNAPSHOTS: text }).snapshots;
  expect(["off", "0", "512MB", "1GiB"].map(read)).toEqual([0, 0, 512e6, 2 ** 30]);
});

test("HEARTH_GPU_MEMORY is a number of bytes, with or without a unit", () => {
  const read = (text: string) => withEnv({ HEARTH_GPU_MEMORY: text }).gpuMemory;
  expect(["auto", "0", "1000000", "512MB", "6GiB", "1.5 gib"].map(read)).toEqual([
    "auto",
    0,
    1e6,
    512e6,
    6 * 2 ** 30,
    1.5 * 2 ** 30,
  ]);
});

describe("an invalid setting is an error naming setting, place, value and expectation", () => {
  test.each([
    ["HEARTH_BACKEND", "cuda", "setting 'backend': expected auto, webgpu, simd, wasm, onnx, cpu, got 'cuda'"],
    ["HEARTH_SNAPSHOTS", "some", "setting 'snapshots': expected 'off', or bytes such as '4GiB'"],
    ["HEARTH_GPU_MEMORY", "6 apples", "setting 'gpuMemory': expected 'auto', or bytes such as '6GiB'"],
    [
      "HEARTH_SIMD",
      "mmx",
      "setting 'simd': expected auto, amx, vnni, avxvnni, avx2, sse41, i8mm, neon, neon80, got 'mmx'",
    ],
    [
      "HEARTH_SIMD",
      "wasm",
      "setting 'simd': expected auto, amx, vnni, avxvnni, avx2, sse41, i8mm, neon, neon80, got 'wasm'; HEARTH_BACKEND=wasm",
    ],
    ["HEARTH_GPU_KERNELS", "threads=48", "setting 'gpuKernels': expected auto, exact, plain, or some of threads=32"],
    ["HEARTH_GPU_MEMORY", "-1", "setting 'gpuMemory': expected 'auto', or bytes such as '6GiB'"],
    ["HEARTH_NUM_PARALLEL", "0", "setting 'numParallel': expected 'auto' or a whole number from 1 to 256, got '0'"],
    ["HEARTH_NUM_PARALLEL", "2.5", "setting 'numParallel': expected 'auto' or a whole number from 1 to 256, got '2.5'"],
    ["HEARTH_MAX_LOADED_MODELS", "some", "setting 'maxLoadedModels': expected 'auto' or a whole number, got 'some'"],
    ["HEARTH_KEEP_ALIVE", "5x", "setting 'keepAlive': expected a duration"],
    ["HEARTH_HOST", "host:99999", "setting 'host': expected [http://]host[:port]"],
    ["HEARTH_HOST", "https://host", "setting 'host': expected [http://]host[:port]"],
    ["HEARTH_HOSTS", "0.0.0.0:11434", "setting 'hosts': expected host names"],
    ["HEARTH_HOSTS", "https://x.y", "setting 'hosts': expected host names"],
    ["HEARTH_HOSTS", "*.", "setting 'hosts': expected host names"],
    ["HEARTH_HOSTS", "a.*.b", "setting 'hosts': expected host names"],
    ["HEARTH_ORIGINS", "*://*", "setting 'origins': expected origins"],
    ["HEARTH_ORIGINS", "x.y", "setting 'origins': expected origins"],
    ["HEARTH_DEBUG", "maybe", "setting 'debug': expected true or false, got 'maybe'"],
  ])("%s=%s", (name, value, message) => {
    expect(() => withEnv({ [name]: value })).toThrow(`${name}: ${message}`);
  });

  test("a secret value is never printed", () => {
    for (const name of ["HEARTH_API_KEYS", "HEARTH_MODELS_KEY", "HEARTH_MODELS_SOURCE_LOGIN"]) {
      expect(() => withEnv({ [name]: "top secret" })).toThrow("got (not shown)");
    }
    expect(() => withEnv({ HEARTH_MODELS_SOURCE: "http://anna:p@ss@r.internal" })).toThrow(
      "no password ('models.sourceLogin'), got 'http://(not shown)@r.internal'",
    );
  });

  test("an unknown setting in the file is named with the nearest known one", async () => {
    const { path, read } = await withFile("{ numParalel: 2 }");
    expect(read).toThrow(`${path}:1: unknown setting 'numParalel': did you mean 'numParallel'?`);
  });

  test("a file that is missing, is not JSON5 or is not an object is named", async () => {
    expect((await withFile("{")).read).toThrow("not JSON5");
    expect((await withFile("[1]")).read).toThrow("expected an object of settings, got [1]");
    const missing = { env: {}, flags: { config: "/nowhere/x.json5" }, home };
    expect(() => readConfig(missing)).toThrow("--config: cannot read '/nowhere/x.json5'");
  });

  test("a path or an include that is not a regular file is refused", async () => {
    const folder = mkdtempSync(join(tmpdir(), "hearth-config-"));
    try {
      const read = (config: string) => () => readConfig({ env: { HEARTH_CONFIG: config }, flags: {}, home });
      expect(read(folder)).toThrow(`${folder}: expected a file, got a folder`);
      const pipe = join(folder, "pipe");
      Bun.spawnSync(["mkfifo", pipe]);
      expect(read(pipe)).toThrow(`${pipe}: expected a file, got something else`); // reading it would never end
      expect(read("/dev/zero")).toThrow("/dev/zero: expected a file, got something else");
      const file = join(folder, "hearth.json5");
      writeFileSync(file, "{ hooks: { $include: './pipe' } }");
      expect(read(file)).toThrow(`${pipe}: expected a file`);
    } finally {
      rmSync(folder, { recursive: true });
    }
  });

  test("a value of the wrong type in the file is named", async () => {
    expect((await withFile("{ apiKeys: [1] }")).read).toThrow("setting 'apiKeys'");
    expect((await withFile("{ numParallel: '4x' }")).read).toThrow("setting 'numParallel'");
    expect((await withFile("{ models: null }")).read).toThrow("setting 'models.folder'");
  });
});

test.each([
  ["0", 0],
  ["1m30s", 90_000],
  ["1h", 3_600_000],
])("HEARTH_SHUTDOWN_GRACE=%s sets the time to shut down", (text, ms) => {
  expect(withEnv({ HEARTH_SHUTDOWN_GRACE: text }).shutdownGraceMs).toBe(ms);
});

test.each(["-1", "61m", "soon"])("HEARTH_SHUTDOWN_GRACE=%s is an error", (text) => {
  expect(() => withEnv({ HEARTH_SHUTDOWN_GRACE: text })).toThrow("HEARTH_SHUTDOWN_GRACE");
});

test("settings of models are keys below `models`; a text as `models` is the folder", () => {
  const home = mkdtempSync(join(tmpdir(), "hearth-config-"));
  const read = (text: string): Config => {
    const path = join(home, "hearth.json5");
    writeFileSync(path, text);
    return readConfig({ env: {}, flags: { config: path }, home });
  };
  try {
    expect(read(`{ models: "/a" }`)).toMatchObject({ models: "/a", modelsUrl: undefined });
    const grouped = read(`{ models: { folder: "/a", url: "https://router:8080/base/", key: "k" } }`);
    expect(grouped).toMatchObject({ models: "/a", modelsUrl: "https://router:8080/base", modelsKey: "k" });
    const wrong = ["models.ulr", "models.url"].map((key) => () => read(`{ models: { ${key.slice(7)}: "ftp://x" } }`));
    expect(wrong[0]).toThrow("unknown setting 'models.ulr'");
    expect(wrong[1]).toThrow("hearth.json5:1: setting 'models.url': expected");
    for (const name of ["modelsUrl", "folder"]) expect(() => read(`{ ${name}: "/a" }`)).toThrow("unknown setting");
  } finally {
    rmSync(home, { recursive: true });
  }
});
