/** Chats out of the page as Markdown: a file of one chat, and one message in the clipboard. */
import { expect, test } from "bun:test";
import { importChat } from "./import-chat.ts";
import { openPage, type World } from "./page.ts";

function asMarkdown(world: () => World): void {
  test("a chat is exported as Markdown, and a message is copied as such", async () => {
    const { page, context, pageErrors } = await openPage(world().browser, `${world().hearth.url}/ui`);
    await context.grantPermissions(["clipboard-read", "clipboard-write"]);
    const pictures = [{ type: "image/png", base64: "" }];
    const ofText = (text: string) => (text === "Why?" ? { files: [{ name: "notes.txt", text: "…" }], pictures } : {});
    await importChat(page, "Why is / the sky blue?", ["Why?", "Because:\n\n```\nlight"], ofText);
    await page.getByRole("button", { name: "More about Why is" }).click();
    const downloading = page.waitForEvent("download");
    await page.getByRole("menuitem", { name: "Export as Markdown" }).click();
    const file = await downloading;
    expect(file.suggestedFilename()).toBe("Why-is-the-sky-blue.md");
    expect(await Bun.file(await file.path()).text()).toBe(
      "# Why is / the sky blue?\n\n## You\n\nAttached: notes.txt, 1 picture\n\nWhy?\n\n## Answer\n\nBecause:\n\n```\nlight\n```\n",
    );
    await page.locator(".message.assistant").getByRole("button", { name: "More", exact: true }).click();
    await page.getByRole("menuitem", { name: "Copy as Markdown" }).click();
    await page.getByText("Copied the message as Markdown.").waitFor();
    expect(await page.evaluate(() => navigator.clipboard.readText())).toBe("## Answer\n\nBecause:\n\n```\nlight\n```");
    expect(pageErrors).toEqual([]);
  }, 60_000);
}

export const exportCases = [asMarkdown] as const;
