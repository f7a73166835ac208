/** Images through stock clients, on a random-weight model with a one-layer projector. */
import { mkdtempSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import Anthropic from "@anthropic-ai/sdk";
import { HumanMessage } from "@langchain/core/messages";
import { ChatOllama } from "@langchain/ollama";
import { afterAll, beforeAll, describe, expect, setDefaultTimeout, test } from "bun:test";
import { Ollama } from "ollama";
import OpenAI from "openai";
import { writeGguf, type WriteModel } from "../../src/engine/formats/files/write.ts";
import { IMAGE_ROWS, makeOneFile, makeProjector, makeVisionText, picture } from "../engine/vision/vision-model.ts";
import { runHearth, startHearth, type Hearth } from "./hearth.ts";
import { mediaCounts } from "./media-counts.ts";

setDefaultTimeout(60_000);

const folder = mkdtempSync(join(tmpdir(), "hearth-vision-"));
const STEADY = { temperature: 0, num_predict: 4 };
const MODEL = "sees";
let hearth: Hearth;

beforeAll(async () => {
  await writeGguf(join(folder, "text.gguf"), makeVisionText());
  await writeGguf(join(folder, "projector.gguf"), makeProjector());
  writeFileSync(join(folder, "Modelfile"), "FROM ./text.gguf\nFROM ./projector.gguf\n");
  hearth = await startHearth();
  const made = await cli(["create", MODEL, "-f", join(folder, "Modelfile")]);
  expect(made.code).toBe(0);
});
afterAll(async () => {
  await hearth.stop();
  rmSync(folder, { recursive: true, force: true });
});

const cli = (args: string[], stdin = "") =>
  runHearth(args, { home: hearth.home, stdin, env: { HEARTH_HOST: hearth.url } });

/** Number of images encoded, and found in the cache, since the last call. */
const counted = mediaCounts(() => hearth.url);

const base64 = (seed: number): string => picture(seed).toString("base64");
const url = (seed: number): string => `data:image/png;base64,${base64(seed)}`;

test("show and list have the vision capability, and show --modelfile has both files", async () => {
  const client = new Ollama({ host: hearth.url });
  const shown = await client.show({ model: MODEL });
  expect(shown.capabilities).toEqual(["completion", "vision"]);
  expect(shown.modelfile.match(/^FROM .*sha256-[0-9a-f]{64}$/gm)).toHaveLength(2);
  expect((await client.show({ model: "hearth" })).capabilities).not.toContain("vision");
  const { models } = (await (await fetch(`${hearth.url}/api/tags`)).json()) as {
    models: { name: string; capabilities: string[] }[];
  };
  expect(models.find(({ name }) => name === `${MODEL}:latest`)?.capabilities).toContain("vision");
});

describe("the npm client", () => {
  test("ollama chats and generates about an image, which is encoded once", async () => {
    const client = new Ollama({ host: hearth.url });
    const chat = (content: string, images: string[] = []) =>
      client.chat({
        model: MODEL,
        messages: [{ role: "user", content, images }],
        options: STEADY,
        stream: false,
      });
    const withoutImage = await chat("what is this?");
    await counted();
    const first = await chat("what is this?", [base64(1)]);
    expect(first.prompt_eval_count).toBe(withoutImage.prompt_eval_count + IMAGE_ROWS + 2); // with the markers around it
    expect(await counted()).toBe("1 encoded, 0 reused");
    const again = await chat("what is this?", [base64(1)]);
    expect([again.message.content, again.prompt_eval_count]).toEqual([first.message.content, first.prompt_eval_count]);
    const asked = await chat("and what colour has it?", [base64(1)]);
    expect(asked.prompt_eval_count).toBeGreaterThan(first.prompt_eval_count);
    expect(await counted()).toBe("0 encoded, 2 reused");
    const generated = await client.generate({
      model: MODEL,
      prompt: "what is this?",
      images: [base64(1)],
      options: STEADY,
      stream: false,
    });
    expect([generated.response, generated.prompt_eval_count]).toEqual([first.message.content, first.prompt_eval_count]);
    expect(generated.context.every((id) => id >= 0)).toBe(true);
    const more = await client.generate({
      model: MODEL,
      prompt: "more",
      context: generated.context,
      options: STEADY,
      stream: false,
    });
    expect(more.prompt_eval_count).toBeGreaterThan(0);
    expect(await counted()).toBe("0 encoded, 1 reused");
  });

  test("ollama gets another answer for another image, and several images keep their order", async () => {
    const client = new Ollama({ host: hearth.url });
    const ask = async (...images: number[]) => {
      const messages = [{ role: "user", content: "x", images: images.map(base64) }];
      const reply = await client.chat({
        model: MODEL,
        messages,
        options: { ...STEADY, num_predict: 8 },
        stream: false,
      });
      return [reply.message.content, reply.prompt_eval_count] as const;
    };
    await counted();
    const [one, two, both, turned] = [await ask(2), await ask(3), await ask(2, 3), await ask(3, 2)];
    expect(await counted()).toBe("2 encoded, 4 reused");
    expect(new Set([one, two, both, turned].map(([text]) => text)).size).toBe(4);
    expect([two[1], both[1], turned[1]]).toEqual([one[1], one[1] + IMAGE_ROWS + 2, one[1] + IMAGE_ROWS + 2]);
  });

  test("openai sends images to chat completions and responses", async () => {
    const client = new OpenAI({ baseURL: `${hearth.url}/v1`, apiKey: "none", maxRetries: 0 });
    const complete = async (content: OpenAI.ChatCompletionContentPart[]) =>
      client.chat.completions.create({
        model: MODEL,
        max_tokens: 4,
        temperature: 0,
        messages: [{ role: "user", content }],
      });
    const text = (said: string) => ({ type: "text" as const, text: said });
    const image = { type: "image_url" as const, image_url: { url: url(4) } };
    const withoutImage = await complete([text("what is this?")]);
    await counted();
    const first = await complete([image, text("what is this?")]);
    expect(first.usage?.prompt_tokens).toBe(withoutImage.usage!.prompt_tokens + IMAGE_ROWS + 2);
    const behind = await complete([text("what is this?"), image]);
    expect(behind.usage?.prompt_tokens).toBe(first.usage!.prompt_tokens);
    const written = await complete([image, text("[img] <image> [img-0]")]);
    const length = "[img] <image> [img-0]".length - "what is this?".length;
    expect(written.usage?.prompt_tokens).toBe(first.usage!.prompt_tokens + length); // a byte is a token here
    expect(await counted()).toBe("1 encoded, 2 reused");
    const linked = complete([{ type: "image_url", image_url: { url: "http://127.0.0.1:9/x.png" } }]);
    await expect(linked).rejects.toMatchObject({
      status: 400,
      message: expect.stringContaining("not currently supported"),
    });

    const response = await client.responses.create({
      model: MODEL,
      max_output_tokens: 4,
      temperature: 0,
      input: [
        {
          role: "user",
          content: [
            { type: "input_image", detail: "auto", image_url: url(4) },
            { type: "input_text", text: "what is this?" },
          ],
        },
      ],
    });
    expect([response.output_text, response.usage?.input_tokens]).toEqual([
      first.choices[0]!.message.content!,
      first.usage!.prompt_tokens,
    ]);
    expect(await counted()).toBe("0 encoded, 1 reused");
  });

  test("@anthropic-ai/sdk sends images in messages and counts their tokens", async () => {
    const client = new Anthropic({ baseURL: hearth.url, apiKey: "any", maxRetries: 0 });
    const source = { type: "base64" as const, media_type: "image/png" as const, data: base64(5) };
    const messages: Anthropic.MessageParam[] = [
      {
        role: "user",
        content: [
          { type: "image", source },
          { type: "text", text: "what is this?" },
        ],
      },
    ];
    await counted();
    const { input_tokens } = await client.messages.countTokens({ model: MODEL, messages });
    expect(await counted()).toBe("0 encoded, 0 reused");
    const ask = () =>
      client.messages.create({
        model: MODEL,
        max_tokens: 4,
        messages,
        ...({ temperature: 0 } as object),
      });
    const [first, again] = [await ask(), await ask()];
    const { usage } = first;
    expect(usage.input_tokens + (usage.cache_read_input_tokens ?? 0)).toBe(input_tokens);
    expect(again.content).toEqual(first.content);
    expect(await counted()).toBe("1 encoded, 1 reused");
  });

  test("@langchain/ollama sends images as parts of a message", async () => {
    await counted();
    const chat = new ChatOllama({
      baseUrl: hearth.url,
      model: MODEL,
      temperature: 0,
      numPredict: 4,
      maxRetries: 0,
    });
    const content = [
      { type: "text", text: "what?" },
      { type: "image_url", image_url: url(6) },
    ];
    const said = await chat.invoke([new HumanMessage({ content })]);
    expect(said.response_metadata["prompt_eval_count"]).toBeGreaterThan(IMAGE_ROWS);
    expect(await counted()).toBe("1 encoded, 0 reused");
  });
});

test("hearth run sends the files that a prompt names", async () => {
  const path = join(folder, "a photo.png");
  writeFileSync(path, picture(7));
  await counted();
  const asked = await cli(["run", MODEL, "what is this", path]);
  expect([asked.code, asked.stderr]).toEqual([0, `Added image '${path}'\n`]);
  expect(await counted()).toBe("1 encoded, 0 reused");
  const again = await cli(["run", MODEL, `what is '${path}' then?`]);
  expect([again.code, await counted()]).toEqual([0, "0 encoded, 1 reused"]);
  const withoutVision = await cli(["run", "hearth", "what is this", path]);
  const warning = `Warning: 'hearth' cannot see images: it gets '${path}' as text\n`;
  expect([withoutVision.code, withoutVision.stderr]).toEqual([0, warning]);
});

test("a GGUF with text model and projector answers like two files", async () => {
  await writeGguf(join(folder, "both.gguf"), makeOneFile());
  writeFileSync(join(folder, "Modelfile.both"), "FROM ./both.gguf\n");
  expect((await cli(["create", "both", "-f", join(folder, "Modelfile.both")])).code).toBe(0);
  const client = new Ollama({ host: hearth.url });
  expect((await client.show({ model: "both" })).capabilities).toEqual(["completion", "vision"]);
  const ask = (model: string) => {
    const messages = [{ role: "user", content: "what is this?", images: [base64(21), base64(22)] }];
    return client.chat({ model, messages, options: { ...STEADY, num_predict: 12 }, stream: false });
  };
  const [both, two] = [await ask("both"), await ask(MODEL)];
  expect([both.message.content, both.prompt_eval_count]).toEqual([two.message.content, two.prompt_eval_count]);
  expect(both.message.content).not.toBe("");
});

describe("bad projectors", () => {
  const create = async (name: string, projector: WriteModel): Promise<void> => {
    await writeGguf(join(folder, `${name}.gguf`), projector);
    writeFileSync(join(folder, name), `FROM ./text.gguf\nFROM ./${name}.gguf\n`);
    expect((await cli(["create", name, "-f", join(folder, name)])).code).toBe(0);
  };
  const ask = async (model: string, images: string[]) => {
    const reply = await hearth.post("/api/generate", { model, prompt: "x", images, options: STEADY, stream: false });
    return [reply.status, ((await reply.json()) as { error?: string }).error] as const;
  };

  test("a model with an unknown kind of projector answers text, and says why it takes no images", async () => {
    await create("odd", makeProjector({ "clip.projector_type": "ldp" }));
    expect((await new Ollama({ host: hearth.url }).show({ model: "odd" })).capabilities).toEqual(["completion"]);
    expect(await ask("odd", [])).toEqual([200, undefined]);
    const refused = /^"odd" does not support images: .*'clip.projector_type': expected one of .*, got 'ldp'$/;
    expect(await ask("odd", [base64(1)])).toEqual([400, expect.stringMatching(refused)]);
  });

  test("a projector without a tensor, or of another width, is an error that names the fault", async () => {
    const { metadata, tensors } = makeProjector();
    const lacking = tensors.filter(({ name }) => name !== "v.blk.1.attn_k.weight");
    await create("lacks", { metadata, tensors: lacking });
    expect((await ask("lacks", []))[1]).toContain("tensor 'v.blk.1.attn_k.weight': expected (32, 32), got none");
    const wide = tensors.map((each) =>
      each.name === "mm.input_projection.weight"
        ? { ...each, shape: [32, 32], data: (each.data as Uint8Array).subarray(0, 4096) }
        : each,
    );
    await create("wide", { metadata, tensors: wide });
    expect((await ask("wide", []))[1]).toContain("reads rows of 64, got a projector to 32");
  });
});

describe("bad images", () => {
  const ask = async (bytes: Uint8Array, model = MODEL) => {
    const images = [Buffer.from(bytes).toString("base64")];
    const reply = await hearth.post("/api/generate", {
      model,
      prompt: "x",
      images,
      options: STEADY,
    });
    return [reply.status, ((await reply.json()) as { error: string }).error];
  };

  test("a damaged or too large image gets a 400 with its number, and other requests continue", async () => {
    const large = picture(8);
    large.writeUInt32BE(10_000, 16);
    large.writeUInt32BE(5000, 20);
    const running = hearth.post("/api/generate", {
      model: MODEL,
      prompt: "y",
      options: { ...STEADY, num_predict: 60 },
      stream: false,
    });
    expect(await ask(Buffer.from("none"))).toEqual([400, expect.stringMatching(/^image 1 of 1: expected PNG, JPEG/)]);
    expect(await ask(picture(8).subarray(0, 50))).toEqual([
      400,
      expect.stringMatching(/^image 1 of 1: PNG of 20×32: /),
    ]);
    expect(await ask(large)).toEqual([400, expect.stringContaining("50.0 megapixels")]);
    expect((await running).status).toBe(200);
    expect((await hearth.runnerPids()).length).toBeGreaterThan(0);
  });

  test("an image for a model without vision gets a 400", async () => {
    expect(await ask(picture(8), "hearth")).toEqual([400, '"hearth" does not support images']);
  });
});

test("a model on the onnx backend answers text, and says why it takes no images", async () => {
  const other = await startHearth({ env: { HEARTH_BACKEND: "onnx" } });
  try {
    const made = await runHearth(["create", MODEL, "-f", join(folder, "Modelfile")], {
      home: other.home,
      env: { HEARTH_HOST: other.url },
    });
    expect(made.code).toBe(0);
    const body = { model: MODEL, prompt: "x", stream: false, options: STEADY };
    expect((await other.post("/api/generate", body)).status).toBe(200);
    const refused = await other.post("/api/generate", { ...body, images: [base64(1)] });
    const reason = "images need another backend than 'onnx'";
    expect([refused.status, await refused.json()]).toEqual([
      400,
      { error: `"${MODEL}" does not support images: ${reason}` },
    ]);
  } finally {
    await other.stop();
  }
});

test("messages whose images do not fit in the context are left out; a prompt with too many images is refused", async () => {
  const turn = (content: string, seeds: number[] = []) => ({
    role: "user",
    content,
    images: seeds.map(base64),
  });
  const chat = (messages: object[]) =>
    hearth.post("/api/chat", { model: MODEL, messages, options: STEADY, stream: false });
  const old = Array.from({ length: 700 }, () => 9);
  const kept = (await (await chat([turn("old", old), turn("new", [9])])).json()) as {
    prompt_eval_count: number;
  };
  const alone = (await (await chat([turn("new", [9])])).json()) as { prompt_eval_count: number };
  expect(kept.prompt_eval_count).toBe(alone.prompt_eval_count);
  const refused = await chat([turn("all", old)]);
  expect([refused.status, ((await refused.json()) as { error: string }).error]).toEqual([
    400,
    expect.stringContaining("longer than the context length"),
  ]);
});
