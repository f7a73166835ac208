/** Models created over HTTP can answer. */
import { afterAll, beforeAll, describe, expect, setDefaultTimeout, test } from "bun:test";
import { existsSync, mkdirSync, mkdtempSync, readFileSync, rmSync, utimesSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { dirname, join } from "node:path";
import { digestOf } from "../../src/library/store/digest.ts";
import { ndjson, startHearth, type Hearth } from "./hearth.ts";

setDefaultTimeout(60_000);

describe("a model created from the embedded one", () => {
  let hearth: Hearth;
  beforeAll(async () => {
    hearth = await startHearth();
  });
  afterAll(() => hearth.stop());

  const show = async (model: string) => {
    return (await (await hearth.post("/api/show", { model })).json()) as Record<string, unknown>;
  };
  const chat = async (model: string) => {
    const messages = [{ role: "user", content: "Tell me a story about a fox." }];
    const body = { model, messages, stream: false, options: { seed: 7 } };
    return (await (await hearth.post("/api/chat", body)).json()) as Record<string, any>;
  };

  test("answers under its own system message and parameters", async () => {
    const modelfile = "FROM hearth\nSYSTEM Answer in one word.\nPARAMETER num_predict 3\nPARAMETER temperature 0";
    const steps: string[] = [];
    for await (const step of ndjson(await hearth.post("/api/create", { model: "short", modelfile }))) {
      steps.push(step["status"]);
    }
    expect(steps.at(-1)).toBe("success");
    const own = await chat("short");
    const base = await chat("hearth");
    expect(own).toMatchObject({ model: "short", done_reason: "length", eval_count: 3 });
    expect(own["prompt_eval_count"]).toBeGreaterThan(base["prompt_eval_count"]); // the system message is in the prompt
    expect(base["eval_count"]).toBeGreaterThan(3);
  });

  test("answers if its GGUF was uploaded", async () => {
    const bytes = readFileSync(join(import.meta.dir, "../../models/hearth/hearth.gguf"));
    const digest = digestOf(bytes);
    const uploaded = await fetch(`${hearth.url}/api/blobs/${digest}`, { method: "POST", body: bytes });
    const from = await uploaded.text();
    const made = await hearth.post("/api/create", { model: "uploaded", modelfile: `FROM ${from}`, stream: false });
    expect(await made.json()).toEqual({ status: "success" });
    expect((await chat("uploaded"))["message"].content.length).toBeGreaterThan(20);
  });

  test("uses the TEMPLATE of its Modelfile, and so does a model created from it", async () => {
    const modelfile = "FROM hearth\nTEMPLATE <|im_start|>user\\n{{ .Prompt }}\nPARAMETER num_predict 1";
    for (const [model, text] of [
      ["own", modelfile],
      ["heir", "FROM own\nSYSTEM You are heir."],
    ] as const) {
      await hearth.post("/api/create", { model, modelfile: text, stream: false });
      const { template, capabilities } = await show(model);
      expect({ template, capabilities }).toEqual({
        template: "<|im_start|>user\\n{{ .Prompt }}",
        capabilities: ["completion"],
      });
      expect((await chat(model))["prompt_eval_count"]).toBeLessThan((await chat("hearth"))["prompt_eval_count"]);
    }
  });

  test("keeps the TEMPLATE {{ .Prompt }}, the default of models without a template", async () => {
    await hearth.post("/api/create", {
      model: "none",
      modelfile: "FROM hearth\nTEMPLATE {{ .Prompt }}",
      stream: false,
    });
    const { template, modelfile } = await show("none");
    expect(template).toBe("{{ .Prompt }}");
    expect(modelfile).toContain("TEMPLATE {{ .Prompt }}");
  });

  test("can be deleted while it is loaded, and blobs that other models use stay", async () => {
    await hearth.post("/api/copy", { source: "hearth", destination: "doomed" });
    await chat("doomed");
    const body = JSON.stringify({ model: "doomed" });
    expect((await fetch(`${hearth.url}/api/delete`, { method: "DELETE", body })).status).toBe(200);
    expect((await chat("doomed"))["error"]).toBe("model 'doomed' not found");
    expect((await chat("hearth"))["message"].content.length).toBeGreaterThan(20);
  });
});

test("a start removes old partial files from the store, unless HEARTH_NOPRUNE is set", async () => {
  const home = mkdtempSync(join(tmpdir(), "hearth-prune-"));
  const left = join(home, ".hearth/models/manifests/.tmp-left");
  mkdirSync(dirname(left), { recursive: true });
  for (const [keep, stays] of [
    ["true", true],
    ["false", false],
  ] as const) {
    writeFileSync(left, "half");
    utimesSync(left, 1e9, 1e9);
    const hearth = await startHearth({ home, env: { HEARTH_NOPRUNE: keep } });
    await hearth.stop();
    expect([keep, existsSync(left)]).toEqual([keep, stays]);
  }
  rmSync(home, { recursive: true });
});
