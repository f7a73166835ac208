/**
 * A user's first minutes with the page: every step through visible elements, without dead ends. The model comes from
 * a registry that is slow enough to watch.
 */
import { afterEach, expect, test } from "bun:test";
import { cpSync, mkdirSync, mkdtempSync, rmSync, writeFileSync } from "node:fs";
import { readFile } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join, resolve } from "node:path";
import type { Page } from "playwright-core";
import { browserRefusal } from "./engine/chromium.ts";
import { eventually, runHearth, startHearth } from "../e2e/hearth.ts";
import { DOCKER_REGISTRY, startDockerRegistry } from "../library/registry/docker-registry.ts";
import { openPage, seekingOf, startBrowser, watchSeeking, type Watched } from "./page.ts";

const DEMO = resolve(import.meta.dir, "../../models/hearth");
const refusal = (await browserRefusal()) ?? (DOCKER_REGISTRY ? undefined : "docker-registry is not installed");

const cleanups: (() => unknown)[] = [];
afterEach(async () => {
  for (const cleanup of cleanups.splice(0).toReversed()) await cleanup();
});

/** Pushes a small model under a name of the public library. Its weights differ from the shipped model's. */
async function publish(registry: string, model: string): Promise<void> {
  const home = mkdtempSync(join(tmpdir(), "hearth-author-"));
  cleanups.push(() => rmSync(home, { recursive: true, force: true }));
  const folder = join(home, "model");
  mkdirSync(folder);
  cpSync(join(DEMO, "Modelfile"), join(folder, "Modelfile"));
  const weights = await readFile(join(DEMO, "hearth.gguf"));
  writeFileSync(join(folder, "hearth.gguf"), Buffer.concat([weights, Buffer.alloc(32)]));
  const author = await startHearth({ home });
  try {
    const env = { HEARTH_HOST: author.url };
    const name = `${registry}/library/${model}`;
    for (const args of [
      ["create", name, "-f", join(folder, "Modelfile")],
      ["push", name, "--insecure"],
    ]) {
      const { code, stderr } = await runHearth(args, { home, env });
      if (code !== 0) throw new Error(`hearth ${args[0]}: ${stderr}`);
    }
  } finally {
    await author.stop();
  }
}

/** A slow registry: 40 ms for each 128 kB, and nothing after a megabyte before `goOn`. */
function slowLine(registry: string): { url: string; goOn: () => void } {
  const { promise: isSeen, resolve: goOn } = Promise.withResolvers<void>();
  const line = Bun.serve({
    port: 0,
    hostname: "127.0.0.1",
    idleTimeout: 0,
    async fetch(request) {
      const { pathname, search } = new URL(request.url);
      const { method, headers } = request;
      const answer = await fetch(`http://${registry}${pathname}${search}`, { method, headers });
      let sent = 0;
      const slowly = answer.body?.pipeThrough(
        new TransformStream<Uint8Array, Uint8Array>({
          async transform(chunk, controller) {
            for (let at = 0; at < chunk.length; at += 0x2_00_00) {
              const piece = chunk.subarray(at, at + 0x2_00_00);
              controller.enqueue(piece);
              if (chunk.length > 0x10_00) await Bun.sleep(40);
              if ((sent += piece.length) > 2 ** 20) await isSeen;
            }
          },
        }),
      );
      return new Response(slowly ?? null, { status: answer.status, headers: answer.headers });
    },
  });
  cleanups.push(() => line.stop(true));
  return { url: `http://127.0.0.1:${line.port}`, goOn };
}

/** The page of a fresh browser; console errors count as errors of the page. */
async function openFresh(url: string): Promise<Watched> {
  const browser = await startBrowser();
  cleanups.push(() => browser.close());
  const opened = await openPage(browser, url);
  opened.page.on("console", (message) => {
    if (message.type() === "error") opened.pageErrors.push(`${message.text()} ${message.location().url}`);
  });
  await opened.page.reload();
  return opened;
}

const answerOver = (page: Page, count: number) =>
  page
    .locator(".message.assistant .about")
    .nth(count - 1)
    .waitFor();

/** The first suggestion of the page while only the demo model is installed. */
async function takeModel(page: Page, model: string, goOn: () => void): Promise<void> {
  const card = page.getByRole("list", { name: "Suggested models" }).getByRole("listitem").filter({ hasText: model });
  await card.getByRole("button", { name: /^Download / }).click();
  await card.getByRole("progressbar", { name: `Progress of ${model}` }).waitFor();
  await card.getByText(/MB of 6\.\d MB/).waitFor();
  goOn();
}

async function chatWithFile(page: Page, model: string): Promise<void> {
  await page.getByRole("button", { name: `Model: ${model}` }).waitFor(); // once it is downloaded
  await page.getByRole("textbox", { name: "Message" }).fill("Hello! Who are you?");
  await page.getByRole("button", { name: "Send", exact: true }).click();
  await answerOver(page, 1);
  const chooser = page.waitForEvent("filechooser");
  await page.getByRole("button", { name: "Attach files" }).click();
  await (await chooser).setFiles({ name: "fox.txt", mimeType: "text/plain", buffer: Buffer.from("A fox is red.\n") });
  await page.getByText("fox.txt").waitFor();
  await page.getByRole("textbox", { name: "Message" }).fill("What colour is the fox?");
  await page.getByRole("button", { name: "Send", exact: true }).click();
  await answerOver(page, 2);
  await page.locator(".message.user", { hasText: "What colour" }).getByText("fox.txt").waitFor();
}

async function branch(page: Page): Promise<void> {
  const question = page.locator(".message.user", { hasText: "What colour" });
  await question.hover();
  await question.getByRole("button", { name: "Edit" }).click();
  await page.getByRole("textbox", { name: "Your message" }).fill("What colour is the badger?");
  await page.getByRole("button", { name: "Send as a new version" }).click();
  await page.getByRole("group", { name: "Version 2 of 2" }).waitFor();
  await answerOver(page, 2);
}

async function findIt(page: Page): Promise<void> {
  await watchSeeking(page);
  await page.getByRole("button", { name: "New chat" }).first().click();
  await page.getByRole("button", { name: /^Search/ }).click();
  await page.getByRole("combobox", { name: "Search chats" }).fill("badger");
  const found = page.getByRole("option").first();
  await found.getByText("badger").first().waitFor();
  await found.click();
  const message = page.locator(".message.user", { hasText: "badger" });
  await message.waitFor();
  expect(await eventually(async () => (await seekingOf(message)).marks === 1)).toBe(true);
}

async function deleteAndUndo(page: Page): Promise<void> {
  const question = page.locator(".message.user", { hasText: "badger" });
  await question.hover();
  await question.getByRole("button", { name: "More", exact: true }).click();
  await page.getByRole("menuitem", { name: /^Delete / }).click();
  await question.waitFor({ state: "detached" });
  await page
    .locator(".notice", { hasText: /^Deleted / })
    .getByRole("button", { name: "Undo" })
    .click();
  await question.waitFor();
}

async function reload(page: Page): Promise<void> {
  await page.reload();
  await page.locator(".message.user", { hasText: "badger" }).waitFor();
  await answerOver(page, 2);
}

test.skipIf(refusal !== undefined)(
  `a first visit can download a model, chat, attach a file, branch, search and undo${refusal ? ` (${refusal})` : ""}`,
  async () => {
    const folder = mkdtempSync(join(tmpdir(), "hearth-library-"));
    cleanups.push(() => rmSync(folder, { recursive: true, force: true }));
    const registry = await startDockerRegistry(folder);
    cleanups.push(() => registry.stop());
    const line = slowLine(registry.host);
    const hearth = await startHearth({ env: { HEARTH_MODELS_SOURCE: line.url } });
    cleanups.push(() => hearth.stop());
    const { suggested } = (await (await fetch(`${hearth.url}/api/catalogue`)).json()) as { suggested: string[] };
    const model = suggested[0]!;
    await publish(registry.host, model);

    const { page, pageErrors } = await openFresh(hearth.url);
    for (const step of [takeModel, chatWithFile, branch, findIt, deleteAndUndo, reload]) {
      await step(page, model, line.goOn);
      expect([step.name, await page.locator(".problem, [role=alert]").allInnerTexts()]).toEqual([step.name, []]);
      expect([step.name, pageErrors]).toEqual([step.name, []]);
    }
  },
  120_000,
);
