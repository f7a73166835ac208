/** Editing a message: while an answer runs, by keyboard, and on a touch screen. */
import { expect, test } from "bun:test";
import { importChat } from "./import-chat.ts";
import { NARROW, openPage, send, watched, type World } from "./page.ts";

const TEXTS = ["Who are you?", "A model.", "And what do you do?", "I answer."] as const;

function whileAnswering(world: () => World): void {
  test("during an answer an edit keeps its text, and the page says why it waits", async () => {
    const { page, pageErrors } = await openPage(world().browser, `${world().hearth.url}/ui`);
    await importChat(page, "Edited", TEXTS);
    await send(page, "Go on for ever.");
    await page.locator(".message[aria-busy=true] .markdown").waitFor();
    const first = page.locator(".message.user").first();
    await first.hover();
    await first.getByRole("button", { name: "Edit" }).click();
    const field = page.getByRole("textbox", { name: "Your message" });
    await field.fill("Who, exactly, are you?");
    await field.press("Enter");
    const why = page.locator(".notice", { hasText: "The model is still answering. Wait for it, or stop it." });
    await why.waitFor();
    expect(await field.inputValue()).toBe("Who, exactly, are you?");
    await why.getByRole("button", { name: "Close" }).click();
    const answer = page.locator(".message.assistant").first();
    await answer.hover();
    await answer.getByRole("button", { name: "Answer again" }).click();
    await why.waitFor();
    await page.getByRole("button", { name: "Stop", exact: true }).click();
    await page.getByText("Stopped.").waitFor();
    await field.press("Enter");
    await first.getByText("Who, exactly, are you?").waitFor();
    await first.getByRole("group", { name: "Version 2 of 2" }).waitFor();
    await page.getByRole("button", { name: "Stop", exact: true }).click();
    expect(pageErrors).toEqual([]);
  }, 60_000);
}

function byKeyboard(world: () => World): void {
  test("a cancelled edit returns the focus to its button", async () => {
    const { page, pageErrors } = await openPage(world().browser, `${world().hearth.url}/ui`);
    await importChat(page, "Edited", TEXTS);
    const edit = page.locator(".message.user").first().getByRole("button", { name: "Edit" });
    await edit.press("Enter");
    await page.getByRole("textbox", { name: "Your message" }).press("Escape");
    await page.waitForFunction(() => document.activeElement?.ariaLabel === "Edit");
    expect(await edit.evaluate((each) => each === document.activeElement)).toBe(true);
    expect(pageErrors).toEqual([]);
  }, 60_000);
}

function byTouch(world: () => World): void {
  test("on a touch screen Enter begins a new line of an edited message", async () => {
    const context = await world().browser.newContext({ viewport: NARROW, hasTouch: true, isMobile: true });
    const pageErrors: string[] = [];
    const page = await watched(context, pageErrors);
    await page.goto(`${world().hearth.url}/ui`);
    await page.getByRole("button", { name: "Chats and views" }).tap();
    await importChat(page, "Edited", TEXTS);
    await page.locator(".message.user").last().getByRole("button", { name: "Edit" }).tap();
    const field = page.getByRole("textbox", { name: "Your message" });
    await field.press("End");
    await field.press("Enter");
    expect(await field.inputValue()).toBe("And what do you do?\n");
    expect(pageErrors).toEqual([]);
  }, 60_000);
}

export const editCases = [whileAnswering, byKeyboard, byTouch] as const;
