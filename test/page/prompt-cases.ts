/** Saved prompts: written, inserted by name and from the menu, deleted with undo, in files; and system prompts. */
import { expect, test } from "bun:test";
import { readFileSync } from "node:fs";
import type { Page } from "playwright-core";
import { readChatFile } from "../../src/page/app/chat/transfer.ts";
import { eventually } from "../e2e/hearth.ts";
import { violationsOf } from "./axe.ts";
import { keepShot, NARROW, openPage, send, watched, WIDE, type World } from "./page.ts";

async function openDialog(page: Page): Promise<void> {
  await page.getByRole("button", { name: "Saved prompts" }).click();
  await page.getByRole("menuitem", { name: "Edit saved prompts" }).click();
}

async function write(page: Page, button: string, name: string, text: string): Promise<void> {
  await page.getByRole("dialog").getByRole("button", { name: button }).click();
  await page.getByRole("textbox", { name: "Name" }).fill(name);
  await page.getByRole("textbox", { name: "Text" }).fill(text);
  await page.getByRole("dialog").getByRole("button", { name: "Save" }).click();
}

async function lookAt(page: Page, name: string): Promise<void> {
  for (const viewport of [NARROW, WIDE]) {
    await page.setViewportSize(viewport);
    for (const colorScheme of ["dark", "light"] as const) {
      await page.emulateMedia({ colorScheme });
      expect([name, viewport.width, await violationsOf(page)]).toEqual([name, viewport.width, []]);
    }
    await keepShot(page, `${name}-${viewport.width}`);
    expect(await page.evaluate(() => document.documentElement.scrollWidth)).toBeLessThanOrEqual(viewport.width);
  }
}

function byName(world: () => World): void {
  test("a saved prompt is inserted by its name and from the menu, edited, and deleted with undo", async () => {
    const { page, context, pageErrors } = await openPage(world().browser, `${world().hearth.url}/ui`);
    const composer = page.locator("#composer");
    await openDialog(page);
    await write(page, "New prompt", "summary", "Summarize the text.");
    await write(page, "New prompt", "short summary", "Summarize in one sentence.");
    await lookAt(page, "prompts");
    await page.keyboard.press("Escape");
    await page.locator("dialog").waitFor({ state: "detached" });
    await composer.fill("/sum");
    const options = page.getByRole("listbox", { name: "Saved prompts" }).getByRole("option");
    expect(await options.locator("strong").allInnerTexts()).toEqual(["summary", "short summary"]);
    await lookAt(page, "prompts-completion");
    await composer.press("ArrowDown");
    await composer.press("Enter"); // sends nothing
    expect(await composer.inputValue()).toBe("Summarize in one sentence.");
    expect(await page.locator(".message").count()).toBe(0);
    await composer.fill("/sum");
    await composer.press("Escape");
    await options.first().waitFor({ state: "detached" });
    expect(await composer.inputValue()).toBe("/sum");
    await page.getByRole("button", { name: "Saved prompts" }).click();
    await page.getByRole("menuitem", { name: "summary", exact: true }).click();
    expect(await eventually(async () => (await composer.inputValue()) === "Summarize the text.")).toBe(true);

    const other = await watched(context, pageErrors);
    await other.goto(page.url());
    await openDialog(page);
    await page.getByRole("button", { name: "Edit summary", exact: true }).click();
    await page.getByRole("textbox", { name: "Text" }).fill("Summarize it.");
    await page.keyboard.press("Escape"); // nothing is saved
    await openDialog(page);
    await page.getByRole("button", { name: "Delete short summary" }).click();
    await page.getByText("Summarize in one sentence.").waitFor({ state: "detached" });
    await page.getByRole("dialog").getByRole("button", { name: "Undo" }).click();
    await page.getByRole("dialog").getByText("Summarize in one sentence.").waitFor();
    await page.getByRole("button", { name: "Delete summary", exact: true }).click();
    await page.getByRole("button", { name: "Edit summary", exact: true }).waitFor({ state: "detached" });
    await other.locator("#composer").fill("/summary");
    await other.getByRole("option", { name: /^short summary/ }).waitFor();
    expect(await other.getByRole("option").count()).toBe(1);
    expect(pageErrors).toEqual([]);
  }, 90_000);
}

function systems(world: () => World): void {
  test("a system prompt is saved, applies to a new chat, and is exported with the chats", async () => {
    const { page, pageErrors } = await openPage(world().browser, `${world().hearth.url}/ui`);
    await page.keyboard.press("Control+,");
    await page.getByRole("textbox", { name: "System prompt" }).fill("Answer as a pirate.");
    await page.getByRole("button", { name: "Save this system prompt" }).click();
    await page.getByRole("textbox", { name: "Name" }).fill("Pirate");
    await page.keyboard.press("Enter");
    await page.getByRole("combobox", { name: "Saved system prompts" }).waitFor();
    expect(await violationsOf(page)).toEqual([]);
    await page.getByRole("textbox", { name: "System prompt" }).fill("");
    await page.getByRole("combobox", { name: "Saved system prompts" }).selectOption("Pirate");
    expect(await page.getByRole("textbox", { name: "System prompt" }).inputValue()).toBe("Answer as a pirate.");
    await page.keyboard.press("Escape");
    await page.locator("dialog").waitFor({ state: "detached" });
    await page.reload(); // the choice for the next chat is gone, the saved prompt is not
    await page.getByRole("button", { name: "Pirate", pressed: false }).click();
    await page.getByRole("button", { name: "Pirate", pressed: true }).waitFor();
    await lookAt(page, "prompts-new");
    const asked = page.waitForRequest((request) => request.url().endsWith("/api/chat"));
    await send(page, "Hello");
    const { messages } = (await asked).postDataJSON() as { messages: object[] };
    expect(messages[0]).toEqual({ role: "system", content: "Answer as a pirate." });
    await page.locator(".message.assistant .about").waitFor();

    const download = page.waitForEvent("download");
    await page.getByRole("button", { name: "Folders, import and export" }).click();
    await page.getByRole("menuitem", { name: "Export all chats" }).click();
    const path = await (await download).path();
    expect(readChatFile(readFileSync(path, "utf8")).prompts.map(({ name, kind }) => [name, kind])).toEqual([
      ["Pirate", "system"],
    ]);
    const fresh = await openPage(world().browser, `${world().hearth.url}/ui`);
    // a second import adds nothing
    for (const _ of [1, 2]) await fresh.page.getByLabel("Files with chats").setInputFiles(path);
    await fresh.page.waitForFunction(() => document.querySelectorAll(".chat-item").length === 2);
    expect(await fresh.page.getByRole("button", { name: "Pirate" }).count()).toBe(1);
    expect([...pageErrors, ...fresh.pageErrors]).toEqual([]);
  }, 90_000);
}

export const promptCases = [byName, systems] as const;
