/** Pinned chats and folders: created, renamed, filled, deleted with undo, in two tabs and in files. */
import { expect, test } from "bun:test";
import { readFileSync } from "node:fs";
import type { Page } from "playwright-core";
import { readChatFile } from "../../src/page/app/chat/transfer.ts";
import { violationsOf } from "./axe.ts";
import { importChat } from "./import-chat.ts";
import { NARROW, openPage, watched, WIDE, type World } from "./page.ts";

async function fromMenu(page: Page, menu: string, item: string): Promise<void> {
  await page.getByRole("button", { name: menu, exact: true }).click();
  await page.getByRole("menuitem", { name: item, exact: true }).click();
}

const inSection = (page: Page, section: string, chat: string) =>
  page.getByRole("region", { name: section, exact: true }).getByRole("link", { name: chat, exact: true });

function pins(world: () => World): void {
  test("a pinned chat is at the top in both tabs, also after a reload", async () => {
    const { page, context, pageErrors } = await openPage(world().browser, `${world().hearth.url}/ui`);
    await importChat(page, "Old", ["Hello.", "Hello, too."]);
    await importChat(page, "Older", ["Hello.", "Hello, too."]);
    const other = await watched(context, pageErrors);
    await other.goto(page.url());
    await fromMenu(page, "More about Old", "Pin to the top");
    await inSection(page, "Pinned", "Old").waitFor();
    await inSection(other, "Pinned", "Old").waitFor();
    await page.reload();
    await inSection(page, "Pinned", "Old").waitFor();
    await fromMenu(other, "More about Old", "Unpin");
    await inSection(page, "Pinned", "Old").waitFor({ state: "detached" });
    expect(pageErrors).toEqual([]);
  }, 60_000);
}

function folders(world: () => World): void {
  test("chats move to a folder by menu and drag; a folder can be renamed, and deleted without its chats", async () => {
    const { page, context, pageErrors } = await openPage(world().browser, `${world().hearth.url}/ui`);
    await importChat(page, "Soup", ["Hello.", "Hello, too."]);
    await importChat(page, "Bread", ["Hello.", "Hello, too."]);
    const other = await watched(context, pageErrors);
    await other.goto(page.url());
    await page.getByRole("button", { name: "More about Soup" }).focus(); // by keyboard alone
    for (const key of ["Enter", "ArrowDown", "Enter"]) await page.keyboard.press(key);
    await page.getByRole("dialog", { name: 'Move "Soup"' }).getByRole("button", { name: "New folder" }).press("Enter");
    await page.getByRole("textbox", { name: "Name of the folder" }).fill("Recipes");
    await page.keyboard.press("Enter");
    await inSection(page, "Recipes", "Soup").waitFor();
    await page.locator(".chat-item", { hasText: "Bread" }).dragTo(page.getByRole("region", { name: "Recipes" }));
    await inSection(page, "Recipes", "Bread").waitFor();
    await inSection(other, "Recipes", "Bread").waitFor();
    await fromMenu(page, "More about the folder Recipes", "Rename");
    await page.getByRole("textbox", { name: "Name of the folder" }).fill("Food");
    await page.keyboard.press("Enter");
    await inSection(other, "Food", "Soup").waitFor();
    await page.getByRole("button", { name: /^Food/ }).click(); // closes it
    await inSection(page, "Food", "Soup").waitFor({ state: "detached" });
    await page.reload();
    await page.getByRole("button", { name: /^Food/, expanded: false }).click();
    await inSection(page, "Food", "Soup").waitFor();
    for (const [viewport, colorScheme] of [
      [WIDE, "light"],
      [WIDE, "dark"],
      [NARROW, "dark"],
      [NARROW, "light"],
    ] as const) {
      await page.setViewportSize(viewport);
      await page.emulateMedia({ colorScheme });
      if (viewport === NARROW && colorScheme === "dark")
        await page.getByRole("button", { name: "Chats and views" }).click();
      expect(await violationsOf(page)).toEqual([]);
    }
    await page.setViewportSize(WIDE);
    await fromMenu(page, "More about the folder Food", "Delete the folder, keep its chats");
    await page.getByRole("region", { name: "Food" }).waitFor({ state: "detached" });
    await page.getByRole("link", { name: "Soup", exact: true }).waitFor();
    await page.locator(".notice", { hasText: "Food" }).getByRole("button", { name: "Undo" }).click();
    await inSection(page, "Food", "Soup").waitFor();
    await inSection(other, "Food", "Bread").waitFor();
    expect(pageErrors).toEqual([]);
  }, 60_000);

  test("folders and pins are exported with all chats, and imported once", async () => {
    const { page, pageErrors } = await openPage(world().browser, `${world().hearth.url}/ui`);
    await importChat(page, "Soup", ["Hello.", "Hello, too."]);
    await fromMenu(page, "Folders, import and export", "New folder");
    await page.getByRole("textbox", { name: "Name of the folder" }).fill("Recipes");
    await page.keyboard.press("Enter");
    await fromMenu(page, "More about Soup", "Move to folder");
    await page.getByRole("dialog").getByRole("button", { name: "Recipes" }).click();
    await inSection(page, "Recipes", "Soup").waitFor();
    const download = page.waitForEvent("download");
    await fromMenu(page, "Folders, import and export", "Export all chats");
    const path = await (await download).path();
    expect(readChatFile(readFileSync(path, "utf8")).folders.map(({ name }) => name)).toEqual(["Recipes"]);
    await page.getByLabel("Files with chats").setInputFiles(path);
    await page.waitForFunction(() => document.querySelectorAll(".chat-item").length === 2);
    expect(await page.getByRole("button", { name: /^Recipes/ }).count()).toBe(1);
    expect(await inSection(page, "Recipes", "Soup").count()).toBe(2);
    expect(pageErrors).toEqual([]);
  }, 60_000);
}

function migration(world: () => World): void {
  test("chats of an earlier page without folders stay", async () => {
    const { browser, hearth } = world();
    const { page, pageErrors } = await openPage(browser, `${hearth.url}/ui`);
    await page.goto(`${hearth.url}/api/version`); // the same origin, without the page
    await page.evaluate(
      () =>
        new Promise<void>((resolve, reject) => {
          indexedDB.deleteDatabase("hearth");
          const request = indexedDB.open("hearth", 1);
          request.onupgradeneeded = () => {
            const chats = request.result.createObjectStore("chats", { keyPath: "id" });
            request.result.createObjectStore("messages", { keyPath: "id" }).createIndex("chat", "chat");
            const about = { model: "m", place: "server", system: "", options: {}, tools: "", leaf: null };
            chats.put({ id: "c", title: "From before", at: 1, updated: 1, ...about });
          };
          request.onsuccess = () => {
            request.result.close();
            resolve();
          };
          request.onerror = () => reject(request.error);
        }),
    );
    await page.goto(`${hearth.url}/ui`);
    await fromMenu(page, "More about From before", "Pin to the top");
    await inSection(page, "Pinned", "From before").waitFor();
    expect(pageErrors).toEqual([]);
  }, 60_000);
}

export const libraryCases = [pins, folders, migration] as const;
