/** Chats: answers that stream, branches, edits, search, settings. */
import { expect, test } from "bun:test";
import { ask, chooseModel, keepShot, NARROW, openPage, type World } from "./page.ts";

function branches(world: () => World): void {
  test("an answer streams, is saved, has branches, and is found by a search", async () => {
    const { page, pageErrors } = await openPage(world().browser, `${world().hearth.url}/`);
    await keepShot(page, "welcome-1440");
    await ask(page, "Who are you?");
    const answer = page.locator(".message.assistant .body");
    const first = await answer.innerText();
    expect(first.length).toBeGreaterThan(3);
    expect(await page.locator(".about").innerText()).toMatch(/^hearth.* tokens$/);
    expect(await page.locator(".meter-text").innerText()).toMatch(/^\d+ of 2,048 tokens$/);

    await page.getByRole("button", { name: "Answer again" }).click(); // a branch beside the first
    await page.locator(".branches", { hasText: "2 / 2" }).waitFor();
    await page.getByRole("button", { name: "Previous version" }).click();
    await page.locator(".branches", { hasText: "1 / 2" }).waitFor();
    await answer.filter({ hasText: first }).waitFor(); // read from the browser's database

    await page.locator("#composer").press("ArrowUp");
    await page.keyboard.type(" Really?");
    await page.keyboard.press("Escape"); // the focus returns
    await page.keyboard.press("ArrowUp"); // edits the last question, as a branch
    await page.getByRole("textbox", { name: "Your message" }).fill("What is two plus two?");
    await page.keyboard.press("Enter");
    await page.locator(".message.user .branches", { hasText: "2 / 2" }).waitFor();
    await page.locator(".message.assistant .about").waitFor();
    expect(await page.locator(".message.user .body").innerText()).toBe("What is two plus two?");

    await page.locator(".message.assistant").getByRole("button", { name: "Edit" }).click(); // replaces the text
    await page.getByRole("textbox", { name: "The answer" }).fill("It is **four**.");
    await page.getByRole("button", { name: "Save", exact: true }).click();
    expect(await page.locator(".message.assistant strong").innerText()).toBe("four");

    await page.reload();
    await page.locator(".message.assistant strong").waitFor();
    await page.keyboard.press("Control+k");
    await page.getByRole("combobox", { name: "Search chats" }).waitFor();
    await page.keyboard.type("four");
    await page.locator("mark", { hasText: "four" }).waitFor();
    await keepShot(page, "search-1440");
    await page.keyboard.press("Enter");
    await page.locator("dialog").waitFor({ state: "detached" });
    expect(pageErrors).toEqual([]);
  }, 60_000);
}

function goingOn(world: () => World): void {
  test("an answer that reached its length limit can be continued, and the chat's settings apply", async () => {
    const { page, pageErrors } = await openPage(world().browser, `${world().hearth.url}/ui`, NARROW);
    await page.getByRole("button", { name: "Settings of this chat" }).click();
    await page.getByRole("spinbutton", { name: "Longest answer, tokens" }).fill("4");
    await page.getByRole("textbox", { name: "System prompt" }).fill("Answer as a pirate.");
    await keepShot(page, "chat-settings-390");
    await page.keyboard.press("Escape");
    await page.locator("dialog").waitFor({ state: "detached" });
    await ask(page, "Once upon a time, tell me a long story.");
    await page.getByText("The answer reached its length limit.").waitFor();
    const begun = await page.locator(".message.assistant .markdown").innerText();
    await page.getByRole("button", { name: "Continue", exact: true }).click();
    await page.waitForFunction(
      (length) => document.querySelector(".message.assistant .markdown")!.textContent!.length > length,
      begun.length,
    );
    await page.locator(".message.assistant .about").waitFor();
    expect((await page.locator(".message.assistant .markdown").innerText()).startsWith(begun)).toBe(true);
    await keepShot(page, "chat-390");
    expect(await page.evaluate(() => document.documentElement.scrollWidth)).toBeLessThanOrEqual(NARROW.width);
    expect(pageErrors).toEqual([]);
  }, 60_000);
}

/** One red pixel. */
const PNG = "iVBORw0KGgoAAAANSUhEUgAAAAEAAAABCAYAAAAfFcSJAAAADUlEQVR42mP8z8BQDwAEhQGAhKmMIQAAAABJRU5ErkJggg==";

function attachments(world: () => World): void {
  test("pictures and text files are shown and sent; another file is refused by name", async () => {
    const { page, pageErrors } = await openPage(world().browser, `${world().hearth.url}/ui`);
    const sent: { messages: { content: string; images?: string[] }[] }[] = [];
    page.on("request", (request) => {
      if (request.url().endsWith("/api/chat")) sent.push(request.postDataJSON());
    });
    await page.getByLabel("Files", { exact: true }).setInputFiles([
      { name: "notes.md", mimeType: "text/markdown", buffer: Buffer.from("# Notes") },
      { name: "data.bin", mimeType: "", buffer: Buffer.from([0, 255, 0]) },
    ]);
    await page.getByText("data.bin is neither a picture nor a text file.").waitFor();
    await page.locator("#composer").evaluate((area, png) => {
      const clipboardData = new DataTransfer();
      const bytes = Uint8Array.from(atob(png), (char) => char.charCodeAt(0));
      clipboardData.items.add(new File([bytes], "red.png", { type: "image/png" }));
      area.dispatchEvent(new ClipboardEvent("paste", { clipboardData, bubbles: true, cancelable: true }));
    }, PNG);
    await page.locator(".attachments .picture").waitFor();
    await keepShot(page, "attached-1440");
    await chooseModel(page, "hearth");
    await page.locator("#composer").fill("What is it?");
    await page.getByRole("alert").getByText("hearth cannot see pictures.").waitFor(); // before it is sent
    await page.getByRole("link", { name: "Get a model that can" }).waitFor();
    await page.locator("#composer").press("Enter");
    expect(await page.locator(".message").count()).toBe(0);
    await page.route("**/api/tags", async (route) => {
      const { models } = (await (await route.fetch()).json()) as { models: { name: string; capabilities: string[] }[] };
      const seeing = { ...models[0]!, name: "seer:latest", capabilities: ["completion", "vision"] };
      await route.fulfill({ json: { models: [...models, seeing] } });
    });
    await page.getByRole("button", { name: /^Model: / }).click();
    await page.keyboard.press("Escape");
    await page.getByRole("button", { name: "Use seer" }).click();
    await page.getByRole("alert").waitFor({ state: "detached" });
    await page.locator("#composer").press("Enter");
    await page.locator(".message.user .picture").waitFor();
    await page.locator(".message.user").getByText("notes.md").waitFor();
    await page.getByRole("button", { name: "Try again" }).waitFor(); // the model does not exist
    expect(sent[0]!.messages).toEqual([
      { role: "user", content: "notes.md:\n\n```\n# Notes\n```\n\nWhat is it?", images: [PNG] },
    ] as never);
    await chooseModel(page, "hearth");
    await page.locator("#composer").fill("And now?");
    await page.getByRole("alert").getByText("hearth cannot see pictures.").waitFor(); // the chat has one
    expect(pageErrors).toEqual([]);
  }, 60_000);
}

export const chatCases = [branches, goingOn, attachments] as const;
