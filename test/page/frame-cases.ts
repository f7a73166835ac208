/** Around a chat: the tab's title, menus inside the list, settings out of range, a narrow composer. */
import { expect, test } from "bun:test";
import { importChat } from "./import-chat.ts";
import { ask, NARROW, openPage, watched, type World } from "./page.ts";

function titles(world: () => World): void {
  test("the title of the tab is that of the chat or view", async () => {
    const { page, pageErrors } = await openPage(world().browser, `${world().hearth.url}/ui`);
    expect(await page.title()).toBe("New chat · Hearth");
    await importChat(page, "On lighthouses", ["Who are you?", "A model."]);
    await page.waitForFunction(() => document.title === "On lighthouses · Hearth");
    await page.getByRole("link", { name: "Models" }).click();
    await page.waitForFunction(() => document.title === "Models · Hearth");
    expect(pageErrors).toEqual([]);
  }, 60_000);
}

function menus(world: () => World): void {
  test("the menu of a message opens inside the list, at the first message and at the last", async () => {
    const { page, pageErrors } = await openPage(world().browser, `${world().hearth.url}/ui`);
    const texts = ["Who are you?", ...Array.from({ length: 9 }, () => "Some words. ".repeat(60))];
    await importChat(page, "Menus", texts);
    for (const message of [page.locator(".message").first(), page.locator(".message").last()]) {
      await message.scrollIntoViewIfNeeded();
      await message.getByRole("button", { name: "More", exact: true }).press("Enter");
      const [log, list] = [await page.locator(".log").boundingBox(), await page.getByRole("menu").boundingBox()];
      expect(list!.y).toBeGreaterThanOrEqual(log!.y);
      expect(list!.y + list!.height).toBeLessThanOrEqual(log!.y + log!.height);
      await page.keyboard.press("Escape");
    }
    expect(pageErrors).toEqual([]);
  }, 60_000);
}

function settings(world: () => World): void {
  test("a setting out of range says so, and is not sent", async () => {
    const { page, pageErrors } = await openPage(world().browser, `${world().hearth.url}/ui`);
    await page.getByRole("button", { name: "Settings of this chat" }).click();
    const [temperature, topK] = [page.getByLabel("Temperature"), page.getByLabel("Top k")];
    await temperature.pressSequentially("15");
    await page.getByText("Not used. Expected a number from 0 to 5.").waitFor();
    expect(await temperature.getAttribute("aria-invalid")).toBe("true");
    await topK.pressSequentially("1.5");
    await page.getByText("Not used. Expected a whole number from 0 to 1,000.").waitFor();
    await topK.fill("7");
    await page.getByText("Not used. Expected a whole number").waitFor({ state: "detached" });
    await page.keyboard.press("Escape");
    const asked = page.waitForRequest("**/api/chat");
    await ask(page, "Who are you?");
    expect(((await asked).postDataJSON() as { options: object }).options).toEqual({ top_k: 7 });
    expect(pageErrors).toEqual([]);
  }, 60_000);
}

function narrow(world: () => World): void {
  test("on a phone the composer shows the model's name in full beside the context", async () => {
    const context = await world().browser.newContext({ viewport: NARROW, hasTouch: true, isMobile: true });
    const pageErrors: string[] = [];
    const page = await watched(context, pageErrors);
    await page.goto(`${world().hearth.url}/ui`);
    await page.getByRole("textbox", { name: "Message" }).fill("Who are you?");
    await page.getByRole("button", { name: "Send", exact: true }).tap();
    await page.getByRole("meter", { name: "Context used" }).waitFor();
    const name = page.getByRole("button", { name: "Model: hearth" }).locator("span").first();
    expect(await name.evaluate((each) => each.scrollWidth - each.clientWidth)).toBe(0);
    expect(pageErrors).toEqual([]);
  }, 60_000);
}

function attachments(world: () => World): void {
  test("attachments stay with their message while another view is open, until it is sent", async () => {
    const { page, pageErrors } = await openPage(world().browser, `${world().hearth.url}/ui`);
    const buffer = Buffer.from("A fox is red.");
    await page.getByLabel("Files", { exact: true }).setInputFiles({ name: "fox.txt", mimeType: "text/plain", buffer });
    const attached = page.locator(".attachments li", { hasText: "fox.txt" });
    await attached.waitFor();
    await page.getByRole("link", { name: "Models" }).click();
    await attached.waitFor({ state: "detached" });
    await page.getByRole("button", { name: "New chat" }).click();
    await attached.waitFor();
    await ask(page, "What colour is it?");
    await page.locator(".message.user", { hasText: "fox.txt" }).waitFor();
    await page.getByRole("button", { name: "New chat" }).click();
    await page.getByText("What is on your mind?").waitFor();
    expect(await attached.count()).toBe(0);
    expect(pageErrors).toEqual([]);
  }, 60_000);
}

function paper(world: () => World): void {
  test("a printed chat has all of its messages, drawn, and no controls", async () => {
    const { page, pageErrors } = await openPage(world().browser, `${world().hearth.url}/ui`);
    const texts = Array.from({ length: 60 }, (_, i) => `Part **${i}**.\n\n${"Some words. ".repeat(60)}`);
    await importChat(page, "Printed", texts);
    await page.waitForFunction(() => document.querySelectorAll(".message").length === 60);
    expect(await page.locator(".message .markdown").count()).toBeLessThan(30);
    await page.emulateMedia({ media: "print" });
    await page.evaluate(() => dispatchEvent(new Event("beforeprint")));
    await page.waitForFunction(() => document.querySelectorAll(".message .markdown").length === 30);
    const shown = await page.evaluate(() => ({
      controls: [...document.querySelectorAll(".sidebar, .composer, .actions")].some((each) => each.checkVisibility()),
      isWhole: document.documentElement.scrollHeight > 60 * 60,
    }));
    expect(shown).toEqual({ controls: false, isWhole: true });
    expect(pageErrors).toEqual([]);
  }, 60_000);
}

export const frameCases = [titles, menus, settings, narrow, attachments, paper] as const;
