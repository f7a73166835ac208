import { afterEach, beforeEach, describe, expect, test } from "bun:test";
import { mkdir, readdir, rm, symlink, truncate, writeFile } from "node:fs/promises";
import { join } from "node:path";
import { openGguf } from "../../../src/engine/formats/files/gguf.ts";
import { blobPath, importBlob, writeBlob } from "../../../src/library/store/blobs.ts";
import type { CreateRequest } from "../../../src/library/create/creation.ts";
import type { Digest } from "../../../src/library/store/digest.ts";
import { makeLibrary, type Library } from "../../../src/library/create/library.ts";
import { readManifest } from "../../../src/library/store/manifest.ts";
import { readModelfileAt, requestOfModelfile } from "../../../src/library/create/modelfile-request.ts";
import { parseName } from "../../../src/library/store/name.ts";
import { blobSource } from "../../../src/library/create/sources.ts";
import { manifestPath, type Store } from "../../../src/library/store/store.ts";
import { encodeGguf, type MemoryModel } from "../../engine/formats/gguf/fixture.ts";
import { f32 } from "../../../src/engine/formats/quant/f32.ts";
import { fields, makeWorkplace, silent, statusesOf } from "../creating.ts";
import { addLayer, putModel, writeTinyGguf } from "../fixture.ts";

let folder: string;
let root: string;
let allowed: string;
let store: Store;
let library: Library;
beforeEach(async () => {
  ({ folder, root, allowed, store, library } = await makeWorkplace());
  await putModel(root, "base", {
    config: { model_family: "old", renderer: "r", capabilities: ["completion"], hearth_embedded: "mark" },
    texts: [
      ["prompt" as "template", "{{ .Prompt }}"],
      ["system", "Old."],
      ["params", '{"stop":["a"],"top_k":3,"top_p":0.5}'],
      ["license", "MIT"],
      ["messages", '[{"role":"user","content":"old"}]'],
    ],
  });
});
afterEach(() => rm(folder, { recursive: true }));

const create = (request: CreateRequest): Promise<string[]> => statusesOf(library.create(request));

const place = () => ({ root, importDirs: [allowed], name: parseName("new") });
const createFrom = async (modelfile: string) => create(await requestOfModelfile(modelfile, place()));
const entry = () => store.load("new");
const configOf = async (name = "new") => {
  const { config } = await readManifest(manifestPath(root, parseName(name)));
  return Bun.file(blobPath(root, config.digest)).json();
};

async function putGguf(extra: Parameters<typeof writeTinyGguf>[1] = {}): Promise<Digest> {
  const path = join(folder, `${crypto.randomUUID()}.gguf`);
  await writeTinyGguf(path, extra);
  return (await importBlob(root, path)).digest;
}
const source = (digest: Digest, label = "x.gguf") => blobSource(root, { label, digest });

describe("creating from a model", () => {
  test("keeps everything that the request does not change", async () => {
    expect(await create(fields({ base: "BASE" }))).toEqual([
      ...Array(6).fill("using existing layer D"),
      "writing manifest",
      "success",
    ]);
    const { template, system, parameters, licenses, messages, layers, digest } = await entry();
    const base = await store.load("base");
    expect({ template, system, parameters, licenses, messages }).toEqual({
      template: "{{ .Prompt }}",
      system: "Old.",
      parameters: { stop: ["a"], top_k: 3, top_p: 0.5 },
      licenses: ["MIT"],
      messages: [{ role: "user", content: "old" }],
    });
    expect(layers).toEqual(base.layers.map((layer) => ({ ...layer, from: "base:latest" })));
    expect(digest).not.toBe(base.digest);
    expect(await configOf()).toMatchObject({ renderer: "r", capabilities: ["completion"], model_family: "llama" });
    expect(await configOf()).not.toHaveProperty("hearth_embedded"); // belonged to the base
  });

  test("texts and messages are replaced, licences appended, and parameters merged over those of the base", async () => {
    const steps = await create(
      fields({
        base: "base",
        template: "{{ .System }}{{ .Prompt }}",
        system: "New.",
        licenses: ["MIT", "Apache"],
        parameters: { stop: ["b"], top_k: 9 },
        messages: [{ role: "assistant", content: "new" }],
        extras: { parser: "glm-ocr", model_family: "mine" },
        capabilities: ["tools", "completion"],
      }),
    );
    expect(steps).toEqual([
      ...Array(2).fill("using existing layer D"), // weights and licence
      ...Array(5).fill("creating new layer D"),
      "writing manifest",
      "success",
    ]);
    const { template, system, parameters, licenses, messages } = await entry();
    expect({ template, system, parameters, licenses, messages }).toEqual({
      template: "{{ .System }}{{ .Prompt }}",
      system: "New.",
      parameters: { stop: ["b"], top_k: 9, top_p: 0.5 },
      licenses: ["MIT", "Apache"],
      messages: [{ role: "assistant", content: "new" }],
    });
    expect(await configOf()).toMatchObject({
      renderer: "r",
      parser: "glm-ocr",
      model_family: "mine",
      capabilities: ["completion", "tools"],
    });
    expect((await store.load("base")).system).toBe("Old.");
  });

  test("a model may be built upon itself, and only replaced layers are removed", async () => {
    const before = (await readdir(join(root, "blobs"))).length;
    await create({ ...fields({ base: "base", system: "New." }), name: parseName("base") });
    expect((await store.load("base")).system).toBe("New.");
    expect((await readdir(join(root, "blobs"))).length).toBe(before); // two new ones for two old ones
  });

  test("a missing or incomplete base is an error before the first status", async () => {
    await expect(create(fields({ base: "none" }))).rejects.toMatchObject({
      code: "not_found",
      message: "model 'none' not found",
    });
    const { paths } = await store.load("base");
    await rm(paths.model);
    await expect(create(fields({ base: "base" }))).rejects.toMatchObject({ code: "bad_file" });
    await expect(entry()).rejects.toMatchObject({ code: "not_found" });
  });

  test("a base that is deleted during the create is an error, and no model is made", async () => {
    const steps = library.create(fields({ base: "base", system: "New." }));
    await steps.next();
    await library.remove(parseName("base"));
    await expect(Array.fromAsync(steps)).rejects.toMatchObject({ code: "bad_file" });
    expect(await store.find("new")).toBeUndefined();
  });

  test("a layer whose other model is deleted during the create is written again", async () => {
    await putModel(root, "other", { texts: [["system", "Shared."]] });
    const steps = library.create(fields({ base: "base", system: "Shared." }));
    for (let status = ""; status !== "writing manifest";) status = (await steps.next()).value?.status ?? "";
    await library.remove(parseName("other"));
    await Array.fromAsync(steps);
    expect((await entry()).system).toBe("Shared.");
  });

  test("a template that does not parse is refused before the first status", async () => {
    const created = create(fields({ base: "base", template: "{{ .Prompt " }));
    await expect(created).rejects.toMatchObject({
      code: "bad_request",
      message: expect.stringMatching(/^template error: /),
    });
  });

  test("a parameter of the wrong type is refused", async () => {
    const created = create(fields({ base: "base", parameters: { top_k: "many" } }));
    await expect(created).rejects.toMatchObject({
      code: "bad_request",
      message: 'option "top_k" must be of type integer',
    });
  });
});

describe("creating from files", () => {
  test("one GGUF becomes a model, described by its metadata", async () => {
    const digest = await putGguf({ "general.file_type": { u32: 15 } });
    expect(await create(fields({ sources: [source(digest)], system: "S" }))).toEqual([
      "parsing GGUF",
      "using existing layer D",
      "creating new layer D",
      "writing manifest",
      "success",
    ]);
    const { config, layers } = await entry();
    expect(config).toMatchObject({
      model_family: "llama",
      model_type: "128",
      file_type: "Q4_K_M",
      context_length: 512,
    });
    expect(layers.map((layer) => layer.mediaType.split(".").at(-1))).toEqual(["model", "system"]);
    expect(await configOf()).toMatchObject({ os: "linux", rootfs: { diff_ids: layers.map((layer) => layer.digest) } });
  });

  test("a projector comes after the model in any order of files, and joins the families", async () => {
    const projector = await putGguf({ "general.architecture": "clip", "general.type": "mmproj" });
    const model = await putGguf();
    await create(fields({ sources: [source(projector, "p.gguf"), source(model)] }));
    const { paths, config, layers } = await entry();
    expect(paths).toMatchObject({ model: blobPath(root, model), projectors: [blobPath(root, projector)] });
    expect(layers.map((layer) => layer.digest)).toEqual([model, projector]);
    expect(config.model_families).toEqual(["llama", "clip"]);
  });

  test.each([
    { "general.architecture": "clip" },
    { "general.architecture": "mllama", "mllama.vision.block_count": { u32: 32 } }, // Llama 3.2 Vision in Ollama
  ])("a projector can be added to a model: %p", async (metadata) => {
    const projector = await putGguf(metadata);
    await create(fields({ base: "base", sources: [source(projector)] }));
    expect((await entry()).paths.projectors).toEqual([blobPath(root, projector)]);
  });

  test("requires exactly one model", async () => {
    const [a, b] = [await putGguf(), await putGguf({ "general.name": "b" })];
    const projector = await putGguf({ "general.type": "projector" });
    for (const [request, found] of [
      [{ sources: [source(a, "a"), source(b, "b")] }, "'a' and 'b'"],
      [{ base: "base", sources: [source(a, "a")] }, "'base:latest' and 'a'"],
      [{ sources: [source(projector)] }, "none"],
    ] as const) {
      const message = `expected one GGUF model to build upon, got ${found}`;
      await expect(create(fields(request))).rejects.toMatchObject({ code: "bad_request", message });
    }
    expect(await store.find("new")).toBeUndefined();
  });

  test("a file that is not GGUF, is damaged, is an adapter or is missing is refused by name", async () => {
    const text = (await writeBlob(root, new TextEncoder().encode("GGUG, nearly"))).digest;
    const torn = (await writeBlob(root, new TextEncoder().encode("GGUF\x03"))).digest;
    const adapter = await putGguf({ "general.type": "adapter" });
    const typeless = await putGguf({ "general.type": { u32: 1 } });
    const missing = `sha256:${"a".repeat(64)}` as Digest;
    for (const [digest, code, message] of [
      [typeless, "bad_request", /^x\.gguf: metadata 'general\.type': expected a string, got the number 1$/],
      [text, "bad_request", /^supplied file was not in GGUF format$/],
      [torn, "bad_request", /^x\.gguf: /],
      [adapter, "bad_request", /^expected one GGUF model to build upon, got none$/],
      [missing, "bad_file", /^x\.gguf: no such file/],
    ] as const) {
      const created = create(fields({ sources: [source(digest)] }));
      await expect(created).rejects.toMatchObject({ code, message: expect.stringMatching(message) });
    }
  });

  const shard = (no: number, count = 3): MemoryModel => ({
    metadata: {
      ...(no === 0 ? { "general.architecture": "llama", "split.tensors.count": { u32: count } } : {}),
      "split.no": { u16: no },
      "split.count": { u16: count },
    },
    tensors: [{ name: `t${no}`, shape: [8], quant: f32, data: new Uint8Array(32).fill(no + 1) }],
  });
  const putShard = async (no: number) => source((await writeBlob(root, encodeGguf(shard(no)))).digest, `part ${no}`);

  test("the parts of a split model become one model in any order", async () => {
    const steps = await create(fields({ sources: [await putShard(2), await putShard(0), await putShard(1)] }));
    expect(steps).toEqual([...Array(3).fill("parsing GGUF"), "creating new layer D", "writing manifest", "success"]);
    const { paths, config } = await entry();
    expect(config.model_type).toBe("24");
    const gguf = openGguf(paths.model);
    for (const no of [0, 1, 2]) expect(gguf.read(`t${no}`)).toEqual(new Uint8Array(32).fill(no + 1));
    gguf.close();
  });

  test("a split model with a missing or repeated part is refused", async () => {
    const [a, b, c] = [await putShard(0), await putShard(1), await putShard(2)];
    await expect(create(fields({ sources: [a, b] }))).rejects.toThrow("expected all 3 parts of a split model, got 2");
    await expect(create(fields({ sources: [a, c] }))).rejects.toThrow(
      "expected part 2 of 3 of a split model, got part 3 of 3",
    );
    await expect(create(fields({ sources: [a, b, b] }))).rejects.toThrow(
      "expected part 3 of 3 of a split model, got part 2 of 3",
    );
    await expect(create(fields({ sources: [b, c] }))).rejects.toThrow("got none");
  });

  test("a split model is found from its first part in an allowed folder", async () => {
    for (const no of [0, 1, 2]) await writeFile(join(allowed, `m-0000${no + 1}-of-00003.gguf`), encodeGguf(shard(no)));
    await createFrom(`FROM ${join(allowed, "m-00001-of-00003.gguf")}`);
    expect((await entry()).config.model_type).toBe("24");
    await expect(createFrom(`FROM ${join(allowed, "m-00002-of-00003.gguf")}`)).rejects.toMatchObject({
      code: "bad_request",
      message: expect.stringContaining("part 2 of 3"),
    });
  });
});

describe("creating from a Modelfile", () => {
  const SEED = ["reading model metadata", "creating system layer"];

  test("reports the statuses of the API", async () => {
    const text = 'FROM base\nSYSTEM New.\nPARAMETER top_k 7\nLICENSE """MIT"""\nMESSAGE user hi\n';
    expect(await createFrom(text)).toEqual([
      ...SEED,
      ...Array(3).fill("using already created layer D"), // weights, template, licence
      ...Array(4).fill("writing layer D"), // system, params, messages, configuration
      "writing manifest",
      "success",
    ]);
    const { system, parameters, messages, licenses } = await entry();
    expect({ system, parameters, messages, licenses }).toEqual({
      system: "New.",
      parameters: { stop: ["a"], top_k: 7, top_p: 0.5 },
      messages: [{ role: "user", content: "hi" }],
      licenses: ["MIT"],
    });
  });

  test("FROM takes a blob's path or digest", async () => {
    const digest = await putGguf();
    const steps = [...SEED, "using already created layer D", "writing layer D", "writing manifest", "success"];
    expect(await createFrom(`FROM ${blobPath(root, digest)}`)).toEqual(steps);
    for (const from of [`@${digest}`, digest, digest.replace(":", "-")]) {
      await createFrom(`FROM ${from}`);
      expect((await entry()).paths.model).toBe(blobPath(root, digest));
    }
  });

  test("FROM takes several files", async () => {
    const [model, projector] = [await putGguf(), await putGguf({ "general.architecture": "clip" })];
    await createFrom(`FROM @${model}\nFROM @${projector}`);
    expect((await entry()).paths).toMatchObject({
      model: blobPath(root, model),
      projectors: [blobPath(root, projector)],
    });
  });

  test("RENDERER, PARSER and REQUIRES go into the configuration", async () => {
    await createFrom("FROM base\nRENDERER glm-4.7\nPARSER qwen3\nREQUIRES 0.1.0");
    expect(await configOf()).toMatchObject({ renderer: "glm-4.7", parser: "qwen3", requires: "0.1.0" });
  });

  test("a renderer or parser of an unknown name is refused", async () => {
    for (const what of ["renderer", "parser"]) {
      await expect(createFrom(`FROM base\n${what.toUpperCase()} x`)).rejects.toMatchObject({
        code: "bad_request",
        message: expect.stringContaining(`unknown ${what} "x"; known: `),
      });
    }
  });

  test("the default template in a Modelfile is kept, unless another server printed the Modelfile", async () => {
    await createFrom("FROM base\nTEMPLATE {{ .Prompt }}");
    expect(await configOf()).toMatchObject({ hearth_template: "own" });
    await createFrom('# Modelfile generated by "ollama show"\nFROM base\nTEMPLATE {{ .Prompt }}');
    expect(await configOf()).not.toHaveProperty("hearth_template");
  });

  test("an unsupported architecture is refused in a file and in a base", async () => {
    const picky = makeLibrary({ root, importDirs: [], noPrune: false, log: silent, runs: (name) => name === "qwen3" });
    const refused = { code: "unsupported", message: expect.stringContaining("the architecture 'llama' cannot be run") };
    await expect(Array.fromAsync(picky.create(fields({ base: "base" })))).rejects.toMatchObject(refused);
    const { paths } = await store.load("base");
    const sources = [{ label: "x.gguf", path: paths.model }];
    await expect(Array.fromAsync(picky.create(fields({ sources })))).rejects.toMatchObject(refused);
  });

  test("two models in FROM are refused", async () => {
    await expect(createFrom("FROM base\nFROM m2")).rejects.toThrow(
      "expected one model to build upon, got 'base' and 'm2'",
    );
  });
});

describe("local files", () => {
  test("are read inside the configured folders, relative to the Modelfile", async () => {
    await mkdir(join(allowed, "sub"));
    for (const from of ["../tiny.gguf", "./near.gguf", "near.gguf", join(allowed, "tiny.gguf")]) {
      await writeTinyGguf(join(allowed, "tiny.gguf"), { "general.name": from });
      await writeTinyGguf(join(allowed, "sub", "near.gguf"), { "general.name": `near ${from}` });
      await writeFile(join(allowed, "sub", "Modelfile"), `FROM ${from}\nSYSTEM ${from}`);
      const { text, folder: at } = await readModelfileAt(join(allowed, "sub", "Modelfile"), place());
      const request = await requestOfModelfile(text, { ...place(), folder: at });
      expect((await create(request))[2]).toBe("writing layer D"); // the layer copied into the store
      expect((await create(request))[2]).toBe("using already created layer D");
      expect((await entry()).system).toBe(from);
    }
    await writeFile(join(allowed, "Modelfile"), "FROM base");
    const { text, folder: at } = await readModelfileAt(join(allowed, "Modelfile"), place());
    expect((await requestOfModelfile(text, { ...place(), folder: at })).base).toBe("base"); // no file of that name
  });

  test("outside of the folders are refused, even if they do not exist", async () => {
    const secret = join(folder, "secret.gguf");
    await writeTinyGguf(secret);
    await symlink(secret, join(allowed, "link.gguf"));
    await symlink(folder, join(allowed, "up"));
    const outside = [secret, "/etc/passwd", "/no/such/file", `${allowed}x/m.gguf`, `${allowed}/../secret.gguf`];
    for (const path of [...outside, join(allowed, "link.gguf"), join(allowed, "up", "secret.gguf")]) {
      await expect(createFrom(`FROM ${path}`)).rejects.toMatchObject({ code: "forbidden" });
      await expect(readModelfileAt(path, place())).rejects.toMatchObject({ code: "forbidden" });
    }
    const inside = { ...place(), folder: allowed };
    for (const from of ["../secret.gguf", "./link.gguf", "link.gguf", "up/secret.gguf"]) {
      await expect(requestOfModelfile(`FROM ${from}`, inside)).rejects.toMatchObject({ code: "forbidden" });
    }
    for (const from of ["sub/../../secret.gguf", "sub/../../none.gguf"]) {
      await expect(requestOfModelfile(`FROM ${from}`, inside)).rejects.toThrow("invalid model name");
    }
    expect(await store.find("new")).toBeUndefined();
  });

  test("a blob path must be in this store", async () => {
    const digest = await putGguf();
    const name = blobPath(root, digest).split("/").at(-1)!;
    for (const path of [`/elsewhere/${name}`, join(root, "blobs", "x", name), `${root}/manifests/${name}`]) {
      await expect(createFrom(`FROM ${path}`)).rejects.toMatchObject({ code: "forbidden" });
    }
  });

  test("a relative path needs a Modelfile on disk, and other text is an invalid model name", async () => {
    for (const from of ["./x.gguf", "../x", "~/x"]) {
      await expect(createFrom(`FROM ${from}`)).rejects.toMatchObject({
        code: "bad_request",
        message: expect.stringContaining("relative path"),
      });
    }
    await expect(createFrom("FROM a b")).rejects.toThrow("invalid model name");
    await expect(createFrom(`FROM ${allowed}/none.gguf`)).rejects.toThrow("no such file");
    await mkdir(join(allowed, "folder"));
    await writeFile(join(allowed, "huge"), "");
    await truncate(join(allowed, "huge"), 2 ** 30);
    for (const [name, reason] of [
      ["none", "ENOENT"],
      ["folder", "expected a file"],
      ["huge", "expected at most 16777216 bytes, got 1073741824"],
    ] as const) {
      const read = readModelfileAt(join(allowed, name), place());
      await expect(read).rejects.toMatchObject({ code: "bad_request", message: expect.stringContaining(reason) });
    }
  });
});

test("a model built upon one with a projector keeps the projector and its families", async () => {
  await putModel(root, "sees");
  const path = join(folder, "p.gguf");
  await writeTinyGguf(path, { "general.architecture": "clip" });
  await addLayer(root, { name: "sees", kind: "projector", bytes: await Bun.file(path).bytes() });
  await create(fields({ base: "sees", system: "S" }));
  expect((await entry()).config.model_families).toEqual(["llama", "clip"]);
});
