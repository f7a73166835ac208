/** Deleted items can be restored for ten seconds, are counted, and are gone with the tab. */
import { expect, test } from "bun:test";
import type { Page } from "playwright-core";
import { eventually } from "../e2e/hearth.ts";
import { importChat } from "./import-chat.ts";
import { openPage, watched, type World } from "./page.ts";

/** From here on, Undo is offered without end: on a slow machine ten seconds can pass before it is clicked. */
const keepOffers = (page: Page): Promise<void> =>
  page.evaluate(() => {
    const { setTimeout: start } = globalThis;
    const UNDO_MS = 10_000;
    globalThis.setTimeout = ((work: () => void, ms?: number) => (ms === UNDO_MS ? 0 : start(work, ms))) as typeof start;
  });

const undo = (page: Page, text: string) =>
  page.locator(".notice", { hasText: text }).getByRole("button", { name: "Undo" }).click();

async function deleteFirst(page: Page, count: string): Promise<void> {
  const first = page.locator(".message").first();
  await first.scrollIntoViewIfNeeded();
  await first.getByRole("button", { name: "More", exact: true }).click();
  await page.getByRole("menuitem", { name: `Delete ${count} messages from here` }).click();
}

function messages(world: () => World): void {
  test("deleted messages are counted, and restored in both tabs by Undo and Ctrl+Z", async () => {
    const { page, context, pageErrors } = await openPage(world().browser, `${world().hearth.url}/ui`);
    const texts = Array.from({ length: 1000 }, (_, i) => `Part ${i}`);
    await importChat(page, "Deleted", texts);
    await keepOffers(page);
    await page.waitForFunction(() => document.querySelectorAll(".message").length === 1000);
    const other = await watched(context, pageErrors);
    await other.goto(page.url());
    await other.getByText("Part 999", { exact: true }).waitFor();

    await deleteFirst(page, "1,000");
    await page.getByText("Deleted 1,000 messages.").waitFor();
    await page.locator(".message").first().waitFor({ state: "detached" });
    await other.locator(".message").first().waitFor({ state: "detached" });
    expect(await page.getByRole("button", { name: "Jump to the end" }).count()).toBe(0);
    await undo(page, "Deleted 1,000 messages.");
    await page.waitForFunction(() => document.querySelectorAll(".message").length === 1000);
    await other.getByText("Part 999", { exact: true }).waitFor();

    await deleteFirst(page, "1,000");
    await page.getByText("Deleted 1,000 messages.").waitFor();
    await page.keyboard.press("Control+z");
    await page.getByText("Part 999", { exact: true }).waitFor();
    await page.reload();
    await page.getByText("Part 999", { exact: true }).waitFor();
    expect(pageErrors).toEqual([]);
  }, 60_000);

  test("a discarded edit and a saved edit can be undone", async () => {
    const { page, pageErrors } = await openPage(world().browser, `${world().hearth.url}/ui`);
    await importChat(page, "Edited", ["Hello.", "Hello, too."]);
    await keepOffers(page);
    const answer = page.locator(".message.assistant");
    await answer.getByRole("button", { name: "Edit" }).click();
    const field = page.getByRole("textbox", { name: "The answer" });
    await field.fill("Long thoughts");
    await page.keyboard.press("Escape");
    await undo(page, "Discarded your changes.");
    expect(await field.inputValue()).toBe("Long thoughts");
    await page.getByRole("button", { name: "Save", exact: true }).click();
    await answer.getByText("Long thoughts").waitFor();
    await undo(page, "Changed the message.");
    await answer.getByText("Hello, too.").waitFor();
    expect(pageErrors).toEqual([]);
  }, 60_000);
}

function chats(world: () => World): void {
  test("Undo restores a deleted chat with its messages and opens it", async () => {
    const { page, pageErrors } = await openPage(world().browser, `${world().hearth.url}/ui`);
    await importChat(page, "Precious", ["Hello.", "Hello, too."]);
    await keepOffers(page);
    const remove = async (): Promise<void> => {
      await page.getByRole("button", { name: "More about Precious" }).click();
      await page.getByRole("menuitem", { name: "Delete" }).click();
      await page.getByRole("link", { name: "Precious" }).waitFor({ state: "detached" });
    };
    await remove();
    await undo(page, 'Deleted "Precious" with 2 messages.');
    await page.getByText("Hello, too.").waitFor();
    await remove();
    await page.reload(); // undo is no longer possible
    await page.locator("#composer").waitFor();
    expect(await page.getByRole("link", { name: "Precious" }).count()).toBe(0);
    expect(pageErrors).toEqual([]);
  }, 60_000);
}

function models(world: () => World): void {
  test("a deleted model stays on the server until Undo ends or the tab is closed", async () => {
    const { hearth, browser } = world();
    const names = async (): Promise<string[]> => {
      const { models } = (await (await fetch(`${hearth.url}/api/tags`)).json()) as { models: { name: string }[] };
      return models.map(({ name }) => name);
    };
    await (await hearth.post("/api/copy", { source: "hearth", destination: "leaving" })).text();
    const { page, pageErrors } = await openPage(browser, `${hearth.url}/ui#/models`);
    await keepOffers(page);
    const more = page.getByRole("button", { name: "More about leaving:latest" });
    const remove = async (): Promise<void> => {
      await more.click();
      await page.getByRole("menuitem", { name: "Delete" }).click();
      await more.waitFor({ state: "detached" });
    };
    await remove();
    await page.locator(".notice", { hasText: /^Deleted leaving \(6\.3 MB\)\./ }).waitFor();
    expect(await names()).toContain("leaving:latest");
    await undo(page, "Deleted leaving");
    await more.waitFor();
    await remove();
    expect(await names()).toContain("leaving:latest");
    expect(pageErrors).toEqual([]);
    await page.close({ runBeforeUnload: true });
    expect(await eventually(async () => !(await names()).includes("leaving:latest"))).toBe(true);
  }, 60_000);
}

function notices(world: () => World): void {
  test("a notice is below menus, and only its buttons take clicks", async () => {
    const { page, pageErrors } = await openPage(world().browser, `${world().hearth.url}/ui`);
    await importChat(
      page,
      "Notices",
      Array.from({ length: 40 }, (_, i) => `Part ${i}`),
    );
    const file = { name: "notes.md", mimeType: "application/json", buffer: Buffer.from("# Notes") };
    await page.getByLabel("Files with chats").setInputFiles(file);
    const notice = page.locator(".notice", { hasText: "notes.md contains no chats." });
    const box = (await notice.boundingBox())!;
    const under = await page.evaluate(([x, y]) => document.elementFromPoint(x!, y!)?.className, [box.x + 8, box.y + 8]);
    expect(under).not.toContain("notice");
    const layers = await page.evaluate(() => {
      const menu = document.createElement("div");
      menu.className = "menu-list";
      document.body.append(menu);
      const layerOf = (each: Element): number => Number(getComputedStyle(each).zIndex);
      return [layerOf(document.querySelector(".notices")!), layerOf(menu)] as const;
    });
    expect(layers[0]).toBeLessThan(layers[1]);
    await notice.waitFor({ state: "detached" });
    expect(pageErrors).toEqual([]);
  }, 60_000);
}

export const undoCases = [messages, chats, models, notices] as const;
