/** A chat with an image, from the socket to the first token, against llama.cpp's logits of the same prompt. */
import { readFileSync } from "node:fs";
import { afterAll, beforeAll, describe, expect, setDefaultTimeout, test } from "bun:test";
import { digestOf } from "../../src/library/store/digest.ts";
import { hasGolden } from "../golden.ts";
import { goldenPath, readFloats, readProjector } from "../engine/vision/golden.ts";
import { startHearth, type Hearth } from "./hearth.ts";

setDefaultTimeout(60_000);

/** Pooled and both ways, with three positions and rows of earlier layers, with rows at the ends of lines. */
const NAMES = ["gemma3", "qwen3vl_merger", "pixtral"];
const TOP = 5;

describe.skipIf(!hasGolden)("the first token after an image", () => {
  let hearth: Hearth;
  beforeAll(async () => {
    hearth = await startHearth();
  });
  afterAll(() => hearth.stop());

  const upload = async (name: string): Promise<string> => {
    const body = readFileSync(goldenPath(name));
    const digest = digestOf(body);
    await fetch(`${hearth.url}/api/blobs/${digest}`, { method: "POST", body });
    return digest;
  };

  test.each(NAMES)("is the reference's for %s", async (name) => {
    const { text, mmproj, prompt, images } = readProjector(name);
    const files = { "text.gguf": await upload(text), "projector.gguf": await upload(mmproj) };
    const model = name.replaceAll("_", "-");
    await hearth.post("/api/create", { model, files, template: "{{ .Prompt }}", stream: false });
    const [before, after] = prompt.split("<__media__>");
    for (const { file, logits, chunks } of Object.values(images).slice(0, 3)) {
      const content = [
        { type: "text", text: before },
        { type: "image_url", image_url: { url: `data:;base64,${readFileSync(goldenPath(file)).toString("base64")}` } },
        { type: "text", text: after },
      ];
      const asked = { model, messages: [{ role: "user", content }], max_tokens: 1, temperature: 0 };
      const reply = await hearth.post("/v1/chat/completions", { ...asked, logprobs: true, top_logprobs: TOP });
      const { usage, choices } = (await reply.json()) as Completion;
      const rows = chunks.reduce((sum, { tokens, n_tokens: count = tokens?.length ?? 0 }) => sum + count, 0);
      expect(usage.prompt_tokens).toBe(rows);
      const [first] = choices[0]!.logprobs?.content ?? [];
      if (!first) continue; // the answer ends at once, which reveals no token
      const expected = likeliest(readFloats(logits.file));
      const apart = first.top_logprobs.map(({ logprob }, i) => Math.abs(logprob - expected[i]!));
      expect(Math.max(...apart)).toBeLessThan(file.endsWith(".jpg") ? 0.02 : 0.005); // JPEGs are rounded differently
    }
  });
});

interface Completion {
  readonly usage: { readonly prompt_tokens: number };
  readonly choices: readonly {
    readonly logprobs: {
      readonly content: readonly { readonly top_logprobs: readonly { logprob: number }[] }[];
    } | null;
  }[];
}

/** Log-probabilities of the likeliest tokens. */
function likeliest(logits: Float32Array): number[] {
  const total = Math.log(logits.reduce((sum, x) => sum + Math.exp(x), 0));
  return Array.from(logits, (x) => x - total)
    .toSorted((a, b) => b - a)
    .slice(0, TOP);
}
