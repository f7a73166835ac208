/** Renderer and parser of models made from files without a template. */
import { afterEach, beforeEach, expect, test } from "bun:test";
import { rm } from "node:fs/promises";
import { join } from "node:path";
import { blobPath, importBlob } from "../../src/library/store/blobs.ts";
import type { CreateRequest } from "../../src/library/create/creation.ts";
import { readManifest } from "../../src/library/store/manifest.ts";
import { parseName } from "../../src/library/store/name.ts";
import { blobSource, type Source } from "../../src/library/create/sources.ts";
import { manifestPath } from "../../src/library/store/store.ts";
import { fields, makeWorkplace, statusesOf } from "./creating.ts";
import { writeTinyGguf } from "./fixture.ts";

let place: Awaited<ReturnType<typeof makeWorkplace>>;
beforeEach(async () => void (place = await makeWorkplace()));
afterEach(() => rm(place.folder, { recursive: true }));

/** A file of that architecture, with its template or without one. */
async function file(architecture: string, template?: string): Promise<Source> {
  const path = join(place.folder, `${crypto.randomUUID()}.gguf`);
  const without = template === undefined ? { "tokenizer.chat_template": "" } : {};
  await writeTinyGguf(path, { "general.architecture": architecture, ...without });
  const { digest } = await importBlob(place.root, path);
  return blobSource(place.root, { label: "x.gguf", digest });
}

async function configOf(request: Partial<CreateRequest>): Promise<Record<string, unknown>> {
  await statusesOf(place.library.create(fields(request)));
  const { config } = await readManifest(manifestPath(place.root, parseName("new")));
  return Bun.file(blobPath(place.root, config.digest)).json();
}

test("a file without a template gets the renderer and the parser of its architecture", async () => {
  expect(await configOf({ sources: [await file("gemma4")] })).toMatchObject({ renderer: "gemma4", parser: "gemma4" });
  const nemotron = { renderer: "nemotron-3-nano", parser: "nemotron-3-nano" };
  expect(await configOf({ sources: [await file("nemotron_h_moe")] })).toMatchObject(nemotron);
});

test("no renderer is added if there is a template or a parser, or the architecture has none", async () => {
  for (const request of [
    { sources: [await file("gemma4")], template: "{{ .Prompt }}" },
    { sources: [await file("gemma4")], extras: { parser: "passthrough" } },
    { sources: [await file("gemma4", "its own")] },
    { sources: [await file("llama")] },
  ]) {
    expect(await configOf(request)).not.toHaveProperty("renderer");
  }
});
