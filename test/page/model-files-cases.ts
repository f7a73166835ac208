/** Files of models that become models: dropped or chosen, checked, sent once, and stopped. */
import { expect, test } from "bun:test";
import { closeSync, ftruncateSync, mkdtempSync, openSync, rmSync, writeSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import type { Page } from "playwright-core";
import { f32 } from "../../src/engine/formats/quant/f32.ts";
import { encodeGguf } from "../engine/formats/gguf/fixture.ts";
import { startHearth } from "../e2e/hearth.ts";
import { violationsOf } from "./axe.ts";
import { ask, keepShot, NARROW, openPage, WIDE, type World } from "./page.ts";

const HEARTH_GGUF = join(import.meta.dir, "../../models/hearth/hearth.gguf");

interface Dropped {
  readonly name: string;
  readonly mimeType: string;
  readonly buffer: Buffer;
}

/** Drops files onto an element of the page. */
async function drop(page: Page, selector: string, files: string | readonly Dropped[]): Promise<void> {
  await page.evaluate(() => {
    const input = Object.assign(document.createElement("input"), { type: "file", multiple: true, id: "dropped" });
    document.body.append(input);
  });
  await page.locator("#dropped").setInputFiles(typeof files === "string" ? files : [...files]);
  await page.locator(selector).evaluate((element) => {
    const input = document.querySelector<HTMLInputElement>("#dropped")!;
    const dataTransfer = new DataTransfer();
    for (const file of input.files ?? []) dataTransfer.items.add(file);
    input.remove();
    for (const type of ["dragover", "drop"]) {
      element.dispatchEvent(new DragEvent(type, { bubbles: true, cancelable: true, dataTransfer }));
    }
  });
}

const file = (name: string, content: string): Dropped => ({
  name,
  mimeType: "application/octet-stream",
  buffer: Buffer.from(content),
});

function dropped(world: () => World): void {
  test("a GGUF that is dropped anywhere becomes a model on a server with a key, and is uploaded once", async () => {
    const home = mkdtempSync(join(tmpdir(), "hearth-ui-files-"));
    const hearth = await startHearth({ home, isBare: true, env: { HEARTH_API_KEYS: "a-key-of-somebody" } });
    try {
      const { page, pageErrors } = await openPage(world().browser, `${hearth.url}/ui`);
      await page.getByLabel("API key", { exact: true }).fill("a-key-of-somebody");
      await page.keyboard.press("Enter");
      await page.locator("dialog").waitFor({ state: "detached" }); // it takes the focus with it
      const asked: string[] = [];
      page.on("request", (request) => {
        if (request.url().includes("/api/blobs/")) asked.push(request.method());
      });
      const gguf = await Bun.file(HEARTH_GGUF).bytes();
      gguf[gguf.length - 1]! ^= 1; // another file than the server has
      const dropping = { ...file("My Model.Q8_0.gguf", ""), buffer: Buffer.from(gguf) };
      for (const name of ["mine:1", "mine:2"]) {
        await drop(page, ".sidebar", [dropping]);
        const dialog = page.getByRole("dialog", { name: "Add a model from files" });
        const field = dialog.getByRole("textbox", { name: "Name" });
        await field.waitFor();
        expect(await field.inputValue()).toBe("my-model:q8_0");
        expect(await dialog.getByRole("listitem").innerText()).toMatch(/My Model\.Q8_0\.gguf\s+6\.3 MB/);
        await field.fill(name);
        await field.press("Enter");
        const card = page.locator(".card", { hasText: name }).first();
        await card.getByText("Created.").waitFor();
      }
      expect(asked).toEqual(["HEAD", "POST", "HEAD"]);
      await page.goto(`${hearth.url}/ui#/chat`);
      await page.getByRole("button", { name: /^Model: mine:[12]/ }).waitFor();
      await ask(page, "Who are you?");
      expect(pageErrors).toEqual([]);
    } finally {
      await hearth.stop();
      rmSync(home, { recursive: true, force: true });
    }
  }, 120_000);

  test("the parts of a split model and its projector become one model", async () => {
    const { page, pageErrors } = await openPage(world().browser, `${world().hearth.url}/ui`);
    const part = (no: number): Dropped => {
      const split = { "split.no": { u16: no }, "split.count": { u16: 2 } };
      const first = no === 0 ? { "general.architecture": "llama", "split.tensors.count": { u32: 2 } } : {};
      const data = new Uint8Array(32).fill(no);
      const tensors = [{ name: `t${no}`, shape: [8], quant: f32, data }];
      return {
        ...file(`Twin-0000${no + 1}-of-00002.gguf`, ""),
        buffer: encodeGguf({ metadata: { ...first, ...split }, tensors }),
      };
    };
    const metadata = { "general.architecture": "clip" };
    const eye = { name: "v.blk", shape: [8], quant: f32, data: new Uint8Array(32) };
    const projector = { ...file("eye.gguf", ""), buffer: encodeGguf({ metadata, tensors: [eye] }) };
    await drop(page, "#main", [part(1), projector, part(0)]);
    await page.getByText(/· for pictures/).waitFor();
    await page.getByRole("dialog").getByRole("button", { name: "Add", exact: true }).click();
    await page.locator(".card", { hasText: "twin" }).getByText("Created.").waitFor();
    const shown = (await (await world().hearth.post("/api/show", { model: "twin" })).json()) as Record<string, unknown>;
    expect(shown["projector_info"]).toMatchObject(metadata);
    await fetch(`${world().hearth.url}/api/delete`, { method: "DELETE", body: JSON.stringify({ model: "twin" }) });
    expect(pageErrors).toEqual([]);
  }, 60_000);

  test("a file that is not a model is attached to the message, wherever it is dropped", async () => {
    const { page, pageErrors } = await openPage(world().browser, `${world().hearth.url}/ui#/system`);
    await drop(page, ".sidebar", [file("notes.txt", "some notes")]);
    await page.locator(".attachments").getByText("notes.txt").waitFor();
    await page.locator("#composer").waitFor();
    expect(pageErrors).toEqual([]);
  }, 60_000);
}

function chosen(world: () => World): void {
  test("files that are not a model are refused in plain words, before an upload", async () => {
    const { page, pageErrors } = await openPage(world().browser, `${world().hearth.url}/ui#/models`, NARROW);
    const asked: string[] = [];
    page.on("request", (request) => {
      if (/\/api\/(blobs|create)/.test(request.url())) asked.push(request.url());
    });
    const dialog = page.getByRole("dialog", { name: "Add a model from files" });
    const refused = async (files: Dropped[], reason: RegExp): Promise<void> => {
      await page.getByLabel("Model files", { exact: true }).setInputFiles(files);
      await dialog.getByText(reason).waitFor();
      expect(await dialog.getByRole("button", { name: "Add" }).count()).toBe(0);
      for (const colorScheme of ["light", "dark"] as const) {
        await page.emulateMedia({ colorScheme });
        expect(await violationsOf(page)).toEqual([]);
      }
      await page.keyboard.press("Escape");
      await dialog.waitFor({ state: "detached" });
    };
    await refused([file("nothing.gguf", "")], /nothing\.gguf is empty\./);
    await refused([file("page.gguf", "<!doctype html>")], /page\.gguf is not a GGUF file\./);
    await refused([file("m-00001-of-00002.gguf", "GGUF")], /A part of the model is missing: m-00002-of-00002\.gguf\./);
    await refused([file("mmproj-m.gguf", "GGUF")], /only the picture encoder of a model/);
    expect(asked).toEqual([]);
    await page.getByLabel("Model files", { exact: true }).setInputFiles([file("half.gguf", "GGUF and no more")]);
    await dialog.getByRole("textbox", { name: "Name" }).waitFor();
    await page.emulateMedia({ colorScheme: "light" });
    expect(await violationsOf(page)).toEqual([]);
    await keepShot(page, "model-files-390");
    await dialog.getByRole("button", { name: "Add", exact: true }).click();
    // the server reports the error
    await page.locator(".card .problem", { hasText: /half|GGUF|version|end/i }).waitFor();
    expect(pageErrors).toEqual([]);
  }, 60_000);

  test("the page responds while a large file is checked, and the check can be stopped", async () => {
    const { page, pageErrors } = await openPage(world().browser, `${world().hearth.url}/ui#/models`, WIDE);
    const folder = mkdtempSync(join(tmpdir(), "hearth-ui-large-"));
    try {
      const path = join(folder, "large.gguf");
      const open = openSync(path, "w");
      writeSync(open, "GGUF");
      ftruncateSync(open, 4e9); // sparse
      closeSync(open);
      await page.getByLabel("Model files", { exact: true }).setInputFiles(path);
      await page.getByRole("dialog").getByRole("button", { name: "Add", exact: true }).click();
      const card = page.locator(".card", { hasText: "large" });
      await card.getByText(/^Checking the file · \d+ MB of 4\.0 GB/).waitFor();
      const frames = await page.evaluate(async () => {
        for (let i = 0; i < 5; i++) await new Promise(requestAnimationFrame);
        return 5;
      });
      expect(frames).toBe(5);
      await card.getByRole("button", { name: "Stop" }).click();
      await card.getByText("Stopped.").waitFor();
      expect(pageErrors).toEqual([]);
    } finally {
      rmSync(folder, { recursive: true });
    }
  }, 60_000);
}

export const modelFilesCases = [dropped, chosen] as const;
