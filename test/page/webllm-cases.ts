/** WebLLM in the page: chosen for a model that runs nowhere else, with verified files. */
import { expect, test } from "bun:test";
import { readFile, writeFile } from "node:fs/promises";
import { join } from "node:path";
import type { Page } from "playwright-core";
import { mlcFolder } from "../library/convert/mlc-folder.ts";
import { uploadedFiles } from "../e2e/upload.ts";
import { keptIn } from "./in-page-cases.ts";
import { chooseModel, keepShot, openPage, send, type World } from "./page.ts";

/** The reason why an answer failed. */
async function failureOf(page: Page, question: string): Promise<string> {
  const failed = page.locator(".message.assistant .warning p");
  const before = await failed.count();
  await send(page, question);
  await failed.nth(before).waitFor();
  return failed.nth(before).innerText();
}

/** Places where the chosen model cannot run, each with the reason. */
async function impossiblePlaces(page: Page): Promise<string[]> {
  await page.getByRole("button", { name: /^Model: / }).click();
  await page.locator(".places summary").click();
  const places = await page.locator(".places label:has(:disabled) > span").allInnerTexts();
  await page.keyboard.press("Escape");
  return places.map((text) => text.split("\n")[0]!);
}

function webLlm(world: () => World): void {
  test("a model that MLC compiled runs only with WebLLM, and a changed file is refused", async () => {
    const { hearth, browser } = world();
    const files = await uploadedFiles(hearth, mlcFolder());
    await (await hearth.post("/api/create", { model: "compiled", files })).text();
    const { page, context, pageErrors } = await openPage(browser, `${hearth.url}/ui`);
    const fetched: string[] = [];
    context.on("request", (request) => fetched.push(request.url().replace(hearth.url, "")));
    await chooseModel(page, "hearth");
    expect(await impossiblePlaces(page)).toEqual(["in this page, with WebLLM"]);
    expect(fetched.filter((url) => url.includes("webllm"))).toEqual([]);
    await chooseModel(page, "compiled");
    await page.getByRole("button", { name: "Model: compiled, in this page, with WebLLM" }).waitFor();
    expect(await impossiblePlaces(page)).toEqual(["on the server", "in this page"]);

    const library = files["made-up-q4f32_1-webgpu.wasm"]!;
    const path = join(hearth.home, ".hearth/models/blobs", library.replace(":", "-"));
    const bytes = await readFile(path);
    await writeFile(path, Buffer.from(bytes).fill(2, 4, 5)); // as many bytes, but different ones
    const changed = await failureOf(page, "Hello");
    expect(changed).toContain(`expected 8 bytes with the digest ${library}, got 8 with sha256:`);
    await keepShot(page, "webllm-1440");
    await writeFile(path, bytes);

    const made = await failureOf(page, "Again");
    expect(made).toStartWith("WebLLM cannot load the model: "); // its library is made up
    expect(made).not.toContain("expected");
    const blobs = new Set(fetched.filter((url) => url.startsWith("/api/blobs/")));
    expect([...blobs]).toEqual(
      ["mlc-chat-config.json", "made-up-q4f32_1-webgpu.wasm"].map((name) => `/api/blobs/${files[name]}`),
    );
    expect(fetched.filter((url) => /^https?:/.test(url))).toEqual([]); // nothing but this server
    expect(fetched).toContain("/ui/webllm.js");

    await page.locator(".message.assistant").last().getByRole("button", { name: "More", exact: true }).click();
    // that model runs there
    await page.getByRole("menuitem", { name: "Answer again with hearth", exact: true }).click();
    await page.locator(".message.assistant .about", { hasText: /^hearth · .* tokens$/ }).waitFor();

    await page.goto(`${hearth.url}/ui#/models`); // its stored files are deleted with it
    expect(await keptIn(page)).toMatch(/^compiled\s+Remove\s+\d+ B · [0-9a-f]{12}/);
    await page.getByRole("button", { name: "More about compiled:latest" }).click();
    await page.getByRole("menuitem", { name: "Delete" }).click();
    await page.getByRole("status").getByRole("button", { name: "Close" }).click(); // no undo
    await page.getByText("No cached models.").waitFor();
    expect(pageErrors).toEqual([]);
  }, 60_000);
}

export const webLlmCases = [webLlm] as const;
