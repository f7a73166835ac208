/** Models in a page on WebGPU that are not plain transformers: the tokens of the server's runner with CPU kernels. */
import { mkdtempSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { afterAll, beforeAll, expect, test } from "bun:test";
import { writeGguf } from "../../../src/engine/formats/files/write.ts";
import { buildForBrowser } from "../../../src/page/engine/build.ts";
import { RunnerProcess } from "../../../src/runtime/processes/runner-process.ts";
import { makeModel } from "../../engine/architectures/models.ts";
import { makeProjector, makeVisionText, picture } from "../../engine/vision/vision-model.ts";
import { RUNNER } from "../../program.ts";
import { drawn } from "../../seed.ts";
import { browserRefusal, sayingsOf } from "./chromium.ts";
import { answersOf, loadOf, type Answered, type Work } from "./models-page.ts";
import { ranged } from "./ranged.ts";

const SEES = "sees";
const TEXT_MODELS = ["qwen35", "qwen3moe"];
const all: readonly Work[] = [
  { model: "qwen35", sees: false, temperature: 8 }, // its logits are large
  { model: "qwen3moe", sees: false, temperature: 1 },
  { model: SEES, sees: true, temperature: 1 },
];
/** Compiling its kernels takes a model seconds: a run draws one by its seed. */
const works = drawn("models in a page", all, 1);
const image = picture(1);

const folder = mkdtempSync(join(tmpdir(), "hearth-page-models-"));
beforeAll(async () => {
  for (const name of TEXT_MODELS) await writeGguf(join(folder, name), makeModel(name));
  await writeGguf(join(folder, SEES), makeVisionText());
  await writeGguf(join(folder, `${SEES}-projector`), makeProjector());
  writeFileSync(join(folder, "picture"), image);
});
afterAll(() => rmSync(folder, { recursive: true, force: true }));

async function answersOfServer(work: Work): Promise<number[][]> {
  const { path, projector, ...load } = loadOf(work);
  const inFolder = { path: join(folder, path), projector: projector && join(folder, projector) };
  const runner = await RunnerProcess.start(
    { ...load, ...inFolder, backend: "simd" },
    { command: RUNNER, env: process.env, loadTimeoutMs: 60_000 },
    new AbortController().signal,
  );
  try {
    return await answersOf(runner, work, work.sees ? image : undefined);
  } finally {
    await runner.close();
  }
}

const refusal = await browserRefusal();
const names = works.map(({ model }) => model).join(", ");
const name = `${names} give the server's tokens on a page's GPU, and an image is encoded once`;

test.skipIf(refusal !== undefined)(
  refusal === undefined ? name : `${name} (${refusal})`,
  async () => {
    const [worker, page] = await Promise.all([
      buildForBrowser(),
      buildForBrowser(join(import.meta.dir, "models-page.ts")),
    ]);
    const scripts = [...worker.scripts, ...page.scripts];
    const answers = await sayingsOf<Answered>({
      script: page.scripts[0]!.text, // the entry
      serve(request) {
        const path = new URL(request.url).pathname.slice(1);
        if (path === "work") return Response.json(works);
        if (works.some(({ model }) => path.startsWith(model)) || path === "picture")
          return ranged(request, join(folder, path));
        const script = scripts.find((each) => each.name === path);
        return script && new Response(script.text, { headers: { "content-type": "text/javascript" } });
      },
    });
    expect(answers.map(({ model, backend }) => [model, backend])).toEqual(works.map(({ model }) => [model, "webgpu"]));
    for (const work of works) {
      const found = answers.find(({ model }) => model === work.model)!;
      expect(found.answers, work.model).toEqual(await answersOfServer(work));
      expect(found.images).toEqual(work.sees ? { encoded: 1, reused: 1 } : { encoded: 0, reused: 0 });
    }
  },
  240_000,
);
