/** Documents as attachments: read in the page, counted, shortened, and refused with texts for users. */
import { expect, test } from "bun:test";
import type { Page } from "playwright-core";
import { violationsOf } from "./axe.ts";
import { bomb, docx, paragraph, pdf } from "./documents.ts";
import { keepShot, NARROW, openPage, WIDE, type World } from "./page.ts";

const attachTo = (page: Page, files: Readonly<Record<string, Uint8Array | string>>): Promise<void> =>
  page.getByLabel("Files", { exact: true }).setInputFiles(
    Object.entries(files).map(([name, content]) => ({
      name,
      mimeType: "application/octet-stream",
      buffer: Buffer.from(content as Uint8Array),
    })),
  );

function documents(world: () => World): void {
  test("PDF and Word files are attached as their text, with pages, size and tokens", async () => {
    for (const viewport of [WIDE, NARROW]) {
      const { page, pageErrors } = await openPage(world().browser, `${world().hearth.url}/ui`, viewport);
      const asked: string[] = [];
      page.on("request", (request) => asked.push(request.url()));
      await attachTo(page, {
        "report.pdf": pdf(["Lorem ipsum", "dolor sit"]),
        "letter.docx": docx(paragraph("Dear reader")),
        "table.csv": "a,b\n1,2",
        "mail.eml": "From: a@b.c\nSubject: Hello\n\nHi",
      });
      const chips = page.locator(".attachments li");
      await chips
        .filter({ hasText: "mail.eml" })
        .getByText(/tokens/)
        .waitFor();
      expect(await chips.nth(0).innerText()).toMatch(/report\.pdf\s+[\d.]+ k?B · 2 pages · \d+ tokens/);
      expect(await chips.nth(1).innerText()).toMatch(/letter\.docx[\s\S]*3 pages · \d+ tokens/);
      for (const colorScheme of ["light", "dark"] as const) {
        await page.emulateMedia({ colorScheme });
        expect(await violationsOf(page)).toEqual([]);
      }
      await keepShot(page, `documents-${viewport.width}`);
      expect(await page.evaluate(() => document.documentElement.scrollWidth)).toBeLessThanOrEqual(viewport.width);
      expect(asked.filter((url) => !url.startsWith(world().hearth.url) && !url.startsWith("blob:"))).toEqual([]);
      const sent = page.waitForRequest("**/api/chat");
      await page.locator("#composer").fill("Sum it up.");
      await page.locator("button[type=submit].send:enabled").click();
      const { messages } = (await sent).postDataJSON() as { messages: { content: string }[] };
      for (const text of [
        "report.pdf:",
        "[1/2]\nLorem ipsum\n\n[2/2]\ndolor sit",
        "Dear reader",
        "1,2",
        "Subject: Hello",
      ]) {
        expect(messages[0]!.content).toContain(text);
      }
      expect(pageErrors).toEqual([]);
    }
  }, 60_000);

  test("a document that is longer than the context gets a warning, and its first part can be kept", async () => {
    const { page, pageErrors } = await openPage(world().browser, `${world().hearth.url}/ui`, NARROW);
    await attachTo(page, { "long.docx": docx(paragraph("A sentence of a few words. ").repeat(800)) });
    await page.getByText(/^The files take [\d,]+ tokens\. The context of hearth has 2,048\./).waitFor();
    await page.emulateMedia({ colorScheme: "light" });
    expect(await violationsOf(page)).toEqual([]);
    await keepShot(page, "document-long-390");
    await page.getByRole("button", { name: "Use the first part" }).click();
    await page
      .locator(".attachments")
      .getByText(/first part · 1,[0-5]\d\d tokens/)
      .waitFor();
    expect(await page.getByText(/^The files take/).count()).toBe(0);
    await page.locator(".notice", { hasText: "Shortened long.docx." }).getByRole("button", { name: "Undo" }).click();
    await page.getByText(/^The files take/).waitFor();
    expect(pageErrors).toEqual([]);
  }, 60_000);
}

function refused(world: () => World): void {
  test("documents that cannot be read are refused in plain words; a slow one is stopped", async () => {
    const { page, pageErrors } = await openPage(world().browser, `${world().hearth.url}/ui`);
    for (const [name, content, reason] of [
      ["scan.pdf", pdf([""]), /scan\.pdf has no text\. It may be scanned/],
      ["half.pdf", pdf(["x"]).slice(0, 40), /half\.pdf is damaged/],
      ["bomb.docx", bomb(1, 65e6), /bomb\.docx is too large once it is unpacked/],
      ["old.doc", Uint8Array.of(0xd0, 0xcf, 0x11, 0xe0), /old\.doc has a password, or is in an old Office format/],
    ] as const) {
      await attachTo(page, { [name]: content });
      await page.getByText(reason).waitFor();
    }
    expect(await page.locator(".attachments").count()).toBe(0);
    await attachTo(page, { "slow.pdf": pdf(Array.from({ length: 3000 }, (_, i) => `Page ${i}`)) });
    await page.getByRole("button", { name: "Stop reading slow.pdf" }).click();
    await page.locator(".attachments").waitFor({ state: "detached" });
    expect(pageErrors).toEqual([]);
  }, 60_000);
}

export const documentCases = [documents, refused] as const;
