import { expect, test } from "bun:test";
import { rm } from "node:fs/promises";
import { join } from "node:path";
import { makeLogger } from "../../../src/base/log.ts";
import { KNOWN_MAX, makeInspect } from "../../../src/server/models/inspect.ts";
import { openStore, type Store } from "../../../src/library/store/store.ts";
import { putModel, tempFolder } from "../../library/fixture.ts";
import { makeHarness } from "../harness.ts";

/** A store that counts loads. */
async function withStore(run: (store: Store, loads: () => number) => Promise<void>): Promise<void> {
  const folder = await tempFolder();
  try {
    await putModel(join(folder, "models"), "m");
    const store = await openStore(join(folder, "models"));
    let loads = 0;
    const load: Store["load"] = (name) => {
      loads++;
      return store.load(name);
    };
    await run({ ...store, load }, () => loads);
  } finally {
    await rm(folder, { recursive: true });
  }
}

const log = makeLogger({ write: () => {}, now: () => 0, debug: false });

test("a model is read once for simultaneous requests", () =>
  withStore(async (store, loads) => {
    const inspect = makeInspect({ store, log });
    const model = (await store.find("m"))!;
    const facts = await Promise.all([inspect(model), inspect(model), inspect(model)]);
    expect(facts[0]).toMatchObject({ gguf: { family: "llama", ctxLen: 512 }, capabilities: ["completion"] });
    expect(await inspect(model)).toBe(facts[2]);
    expect(loads()).toBe(1);
  }));

test("a limited number of models is remembered, and the least recently used is dropped", () =>
  withStore(async (store, loads) => {
    const inspect = makeInspect({ store, log });
    const model = (await store.find("m"))!;
    const ask = (digest: number) => inspect({ ...model, digest: String(digest) });
    for (let digest = 0; digest < KNOWN_MAX; digest++) await ask(digest);
    await ask(0);
    expect(loads()).toBe(KNOWN_MAX);
    await ask(KNOWN_MAX); // replaces 1
    await ask(0);
    expect(loads()).toBe(KNOWN_MAX + 1);
    await ask(1);
    expect(loads()).toBe(KNOWN_MAX + 2);
  }));

test("a model that failed to be read is read again", () =>
  withStore(async (store, loads) => {
    const inspect = makeInspect({ store, log });
    const model = (await store.find("m"))!;
    const { paths } = await store.load("m");
    const bytes = await Bun.file(paths.model).bytes();
    await Bun.write(paths.model, new Uint8Array(bytes.length));
    expect(await inspect(model)).toBeUndefined();
    await Bun.write(paths.model, bytes);
    expect(await inspect(model)).toMatchObject({ gguf: { family: "llama" } });
    expect(loads()).toBe(3);
  }));

test("capabilities follow the renderer and the parser of the configuration", async () => {
  const harness = await makeHarness();
  const config = {
    model_format: "gguf",
    model_family: "qwen3vl",
    renderer: "qwen3-vl-thinking",
    parser: "qwen3-vl-thinking",
  };
  const without = { "tokenizer.chat_template": false } as const; // no template of its own
  await putModel(harness.root, "named", { config, gguf: without });
  await putModel(harness.root, "unknown", { config: { ...config, renderer: "from-the-future" }, gguf: without });
  const show = async (model: string): Promise<any> => (await harness.post("/api/show", { model })).json();
  const { capabilities, template, modelfile } = await show("named");
  expect(capabilities).toEqual(["tools", "thinking", "completion"]);
  expect(template).toContain("<tool_response>");
  expect(modelfile).toContain("\nRENDERER qwen3-vl-thinking\nPARSER qwen3-vl-thinking\n");
  expect((await show("unknown")).capabilities).toEqual(["completion"]);
  await harness.close();
});
