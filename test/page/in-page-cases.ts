/** Models that run in the page: the server's answers, files downloaded once, and failures. */
import { expect, test } from "bun:test";
import type { BrowserContext, Locator, Page } from "playwright-core";
import { digestOf } from "../../src/library/store/digest.ts";
import { eventually } from "../e2e/hearth.ts";
import { encodeGguf, type MemoryModel } from "../engine/formats/gguf/fixture.ts";
import { makeProjector, makeVisionText, picture } from "../engine/vision/vision-model.ts";
import { ask, chooseModel, choosePlace, keepShot, openPage, send, watched, type Watched, type World } from "./page.ts";

const QUESTION = "Tell me a story.";

async function answerOfServer({ hearth }: World, count: number): Promise<string> {
  const said = await hearth.post("/api/chat", {
    model: "hearth",
    stream: false,
    options: { temperature: 0, num_predict: count },
    messages: [{ role: "user", content: QUESTION }],
  });
  const { message, eval_count } = (await said.json()) as { message: { content: string }; eval_count: number };
  expect(eval_count).toBe(count);
  return message.content.trim();
}

/** A page whose models run on the given backend. */
async function openWith({ browser, hearth }: World, backend: string): Promise<Watched> {
  const opened = await openPage(browser, `${hearth.url}/ui`);
  await opened.page.evaluate((name) => localStorage.setItem("hearth-backend", name), backend);
  await opened.page.reload();
  return opened;
}

/** Makes the next answers of the new chat in the page, greedily. */
async function chooseHere(page: Page, count: number): Promise<void> {
  await choosePlace(page, "in this page");
  await limitAnswers(page, count);
}

/** Makes the next answers of the chat greedy, and of at most `count` tokens. */
async function limitAnswers(page: Page, count: number): Promise<void> {
  await page.getByRole("button", { name: "Settings of this chat" }).click();
  await page.getByRole("spinbutton", { name: "Temperature" }).fill("0");
  await page.getByRole("spinbutton", { name: "Longest answer, tokens" }).fill(`${count}`);
  await page.keyboard.press("Escape");
  await page.locator("dialog").waitFor({ state: "detached" });
}

/** Opens the folded part of the view of models. */
async function openInPage(page: Page): Promise<Locator> {
  const inPage = page.getByRole("group", { name: "Models in this page" });
  if ((await inPage.getAttribute("open")) === null) await inPage.locator("summary").click();
  return inPage;
}

/** The stored models in the page's list. */
export async function keptIn(page: Page): Promise<string> {
  const inPage = await openInPage(page);
  await page.getByRole("button", { name: "Show cached models" }).click();
  await page.getByText(/ used$|No cached models/).waitFor();
  return inPage.getByRole("list").innerText();
}

function inPage(world: () => World): void {
  test("a model in the page gives the server's answer at temperature 0, and its file is downloaded once", async () => {
    const count = 16;
    const expected = await answerOfServer(world(), count);
    const { page, context, pageErrors } = await openWith(world(), "wasm");
    const fetched: string[] = [];
    context.on("request", (request) => fetched.push(new URL(request.url()).pathname));
    await chooseHere(page, count);
    await ask(page, QUESTION);
    expect(fetched.some((path) => path.startsWith("/api/blobs/"))).toBe(true);
    const answer = page.locator(".message.assistant .markdown");
    expect(await answer.innerText()).toBe(expected);
    expect(await page.locator(".about").innerText()).toMatch(new RegExp(`in this page.* ${count} tokens`));
    await page.getByText("The answer reached its length limit.").waitFor();
    await keepShot(page, "in-page-1440");

    fetched.length = 0; // a second visit
    await page.goto(`${world().hearth.url}/ui#/models`);
    expect(await keptIn(page)).toMatch(/^hearth\nUnload\n[^]* on wasm · [^]*\nWeights of a model/);
    await page.reload();
    expect(await keptIn(page)).toStartWith("Weights of a model");
    await page.getByRole("button", { name: "New chat" }).click();
    await chooseHere(page, count);
    await ask(page, QUESTION);
    expect(await answer.innerText()).toBe(expected);
    expect(fetched.filter((path) => path.startsWith("/api/blobs/"))).toEqual([]);

    await page.goto(`${world().hearth.url}/ui#/models`);
    await openInPage(page);
    await page.getByRole("button", { name: "Remove" }).click();
    await page.getByText("unload it there, then remove it").waitFor();
    await page.getByRole("group", { name: "Models in this page" }).getByRole("button", { name: "Unload" }).click();
    await page.getByRole("button", { name: "Remove" }).click();
    await page.getByText("No cached models.").waitFor();
    expect(pageErrors).toEqual([]);
  }, 120_000);
}

/** Lets the first piece of a file pass, and holds the others until released. */
async function holdPieces(context: BrowserContext): Promise<{ ranges: string[]; goOn(): void }> {
  const ranges: string[] = [];
  let isHeld = true;
  await context.route("**/api/blobs/**", async (route) => {
    const { range } = route.request().headers();
    if (range) ranges.push(range);
    if (!isHeld || ranges.length < 2) await route.continue();
  });
  return { ranges, goOn: () => void (isHeld = false) };
}

function closedInDownload(world: () => World): void {
  test("a tab that waits for another tab's download says so, and downloads the rest if that tab is closed", async () => {
    const { page, context, pageErrors } = await openWith(world(), "wasm");
    const pieces = await holdPieces(context);
    await chooseHere(page, 4);
    await send(page, QUESTION);
    await page.getByText(/Downloading the model into this page: 4.2 MB of/).waitFor();
    expect(await eventually(() => pieces.ranges.length === 2)).toBe(true);

    const other = await watched(context, pageErrors);
    await other.goto(`${world().hearth.url}/ui#/models`);
    expect(await keptIn(other)).toMatch(/^Part of: Weights of a model\s+Remove\s+4.2 MB/);
    await other.getByRole("button", { name: "New chat" }).click();
    await chooseHere(other, 4);
    await send(other, QUESTION);
    await other.getByText("Another tab is downloading this model.").waitFor();
    pieces.goOn();
    pieces.ranges.length = 0;
    await page.close();
    await other.locator(".message.assistant .about").waitFor();
    expect(pieces.ranges).toEqual([expect.stringMatching(/^bytes=4194304-/)]); // the rest of it
    const second = await watched(context, pageErrors);
    await second.goto(`${world().hearth.url}/ui`);
    await second.getByRole("link", { name: QUESTION }).last().click(); // the closed tab's chat
    await second.getByText("The page was closed before this answer was complete.").waitFor();
    await second.getByRole("button", { name: "Try again" }).click();
    await second.locator(".message.assistant .about", { hasText: "4 tokens" }).waitFor();
    expect(pieces.ranges).toHaveLength(1);
    expect(pageErrors).toEqual([]);
  }, 120_000);
}

function lostDevice(world: () => World): void {
  test("an answer whose GPU is lost keeps its text, and can be continued to the server's answer", async () => {
    const expected = await answerOfServer(world(), 120);
    const { page, pageErrors } = await openWith(world(), "webgpu");
    await chooseHere(page, 100); // more than it writes before the GPU is lost
    await send(page, QUESTION);
    const answer = page.locator(".message.assistant .markdown");
    await answer.waitFor({ timeout: 90_000 }); // a processor plays the GPU
    await (await world().browser.newBrowserCDPSession()).send("Browser.crashGpuProcess");
    const said = page.locator(".message.assistant .warning p");
    await said.waitFor();
    expect(await said.innerText()).toMatch(/^GPU '.*' was lost: .* Continue or try again to load it\./);
    const begun = await answer.innerText();
    expect(begun.length).toBeGreaterThan(0);
    await keepShot(page, "lost-1440");
    await limitAnswers(page, 4);
    await page.getByRole("button", { name: "Continue", exact: true }).click();
    await page.getByText("The answer reached its length limit.").waitFor({ timeout: 90_000 });
    const whole = await answer.innerText();
    expect(whole.length).toBeGreaterThan(begun.length);
    expect(expected).toStartWith(whole);
    await page.goto(`${world().hearth.url}/ui#/models`);
    await (await openInPage(page)).getByText(/ on webgpu · /).waitFor();
    expect(pageErrors).toEqual([]);
  }, 240_000);
}

/** A model with a projector. */
async function makeSeer({ hearth }: World): Promise<void> {
  const files: Record<string, string> = {};
  for (const [name, model] of Object.entries({ "text.gguf": makeVisionText(), "eyes.gguf": makeProjector() })) {
    const bytes = encodeGguf(model as MemoryModel); // its tensors are in memory
    files[name] = digestOf(bytes);
    expect(
      (await fetch(`${hearth.url}/api/blobs/${files[name]}`, { method: "POST", body: new Uint8Array(bytes) })).ok,
    ).toBe(true);
  }
  expect((await hearth.post("/api/create", { model: "seer", files, stream: false })).ok).toBe(true);
}

function seesInPage(world: () => World): void {
  test("a model in the page gives the server's answer about a picture", async () => {
    await makeSeer(world());
    try {
      const { page, pageErrors } = await openWith(world(), "wasm");
      await chooseModel(page, "seer");
      await chooseHere(page, 8);
      const buffer = picture(1);
      await page.getByLabel("Files", { exact: true }).setInputFiles({ name: "a.png", mimeType: "image/png", buffer });
      await page.locator(".attachments .picture").waitFor();
      const asking = page.waitForRequest("**/api/parts");
      await ask(page, QUESTION);
      expect((await asking).postDataJSON()).toMatchObject({ model: "seer:latest" });
      const said = await world().hearth.post("/api/chat", {
        model: "seer",
        stream: false,
        options: { temperature: 0, num_predict: 8 },
        messages: [{ role: "user", content: QUESTION, images: [buffer.toString("base64")] }],
      });
      const { message } = (await said.json()) as { message: { content: string } };
      expect(message.content).not.toBe("");
      expect(await page.locator(".message.assistant .markdown").innerText()).toBe(message.content.trim());
      expect(pageErrors).toEqual([]);
    } finally {
      const body = JSON.stringify({ model: "seer" });
      await fetch(`${world().hearth.url}/api/delete`, { method: "DELETE", body });
    }
  }, 60_000);
}

export const inPageCases = [inPage, closedInDownload, lostDevice, seesInPage] as const;
