/** Formulas in answers: MathML elements, copied as their source, and harmless. */
import { expect, test } from "bun:test";
import { violationsOf } from "./axe.ts";
import { importChat } from "./import-chat.ts";
import { keepShot, NARROW, openPage, type World } from "./page.ts";

const ANSWER = [
  "The roots are $x_{1,2}$, which cost $5 and $10:",
  "$$\nx = \\frac{-b \\pm \\sqrt{b^2 - 4ac}}{2a}\n$$",
  "\\[ A = \\begin{pmatrix} 1 & 2 \\\\ 3 & 4 \\end{pmatrix} \\]",
  "Code `$y$` stays code.",
].join("\n\n");

const HOSTILE_FORMULAS = [
  "$\\href{javascript:globalThis.broken=1}{x}$",
  "$\\includegraphics{https://tracker.invalid/a.png}$",
  "$\\style{background:url(https://tracker.invalid)}{x}\\class{skip}{y}\\id{main}{z}$",
  "$\\text{<img src=x onerror=globalThis.broken=1>}$",
  `$$${"{".repeat(100_000)}$$`,
  "$$\\def\\a{\\a\\a}\\a$$",
].join("\n\n");

function formulas(world: () => World): void {
  test("formulas are MathML in both colour schemes and widths, and are copied as their source", async () => {
    const { page, pageErrors } = await openPage(world().browser, `${world().hearth.url}/ui`, NARROW);
    await page.getByRole("button", { name: "Chats and views" }).click();
    await importChat(page, "Roots", ["What are the roots?", ANSWER]);
    const answer = page.locator(".message.assistant");
    await answer.locator("math").nth(2).waitFor();
    expect(await answer.locator("math").count()).toBe(3);
    expect(await answer.locator("mfrac").evaluate((each) => each.namespaceURI)).toContain("MathML");
    const size = await answer.locator("mfrac").evaluate((each) => each.getBoundingClientRect().height);
    expect(size).toBeGreaterThan(20); // a fraction has two lines
    expect(await answer.innerText()).toContain("$5 and $10");
    expect(await answer.locator("code").innerText()).toBe("$y$");
    for (const colorScheme of ["light", "dark"] as const) {
      await page.emulateMedia({ colorScheme });
      expect(await violationsOf(page)).toEqual([]);
    }
    await keepShot(page, "formulas-390");
    expect(await page.evaluate(() => document.documentElement.scrollWidth)).toBeLessThanOrEqual(NARROW.width);
    const copied = await answer.locator(".markdown").evaluate((element) => {
      getSelection()?.selectAllChildren(element);
      const clipboardData = new DataTransfer();
      element.dispatchEvent(new ClipboardEvent("copy", { clipboardData, bubbles: true, cancelable: true }));
      return clipboardData.getData("text/plain");
    });
    expect(copied).toContain("The roots are $x_{1,2}$, which cost $5 and $10:\n");
    expect(copied).toContain("\\frac{-b \\pm \\sqrt{b^2 - 4ac}}{2a}");
    expect(copied).toContain("\\[ A = \\begin{pmatrix} 1 & 2 \\\\ 3 & 4 \\end{pmatrix} \\]");
    expect(pageErrors).toEqual([]);
  }, 60_000);

  test("hostile formulas give no markup, no request and no endless loop", async () => {
    const { page, pageErrors } = await openPage(world().browser, `${world().hearth.url}/ui`);
    const asked: string[] = [];
    page.on("request", (request) => asked.push(request.url()));
    await importChat(page, "Hostile formulas", ["?", HOSTILE_FORMULAS]);
    await page.locator(".message.assistant math").first().waitFor();
    expect(await page.evaluate(() => "broken" in globalThis)).toBe(false);
    expect(
      await page.locator(".message img, .message math [href], .message math [class], .message math [id]").count(),
    ).toBe(0);
    expect(asked.filter((url) => !url.startsWith(world().hearth.url))).toEqual([]);
    expect(pageErrors).toEqual([]);
  }, 60_000);

  test("a formula that streams in is shown as its source until it is whole", async () => {
    const { page, pageErrors } = await openPage(world().browser, `${world().hearth.url}/ui`);
    await page.route("**/api/chat", (route) => {
      const lines = "Sum:\n\n$$\na_1 + a_2 * a_3 * b_1\n".split(/(?<=\s)/).map((content) => ({
        message: { role: "assistant", content },
        done: false,
      }));
      const end = { message: { role: "assistant", content: "$$\n" }, done: true, done_reason: "stop" };
      return route.fulfill({ body: [...lines, end].map((each) => JSON.stringify(each)).join("\n") });
    });
    await page.evaluate(() => {
      const seen = new Set<string>();
      Object.assign(globalThis, { seen });
      new MutationObserver(() => {
        for (const each of document.querySelectorAll(".message.assistant em, .message.assistant merror"))
          seen.add(each.outerHTML);
      }).observe(document.body, { childList: true, subtree: true, characterData: true });
    });
    await page.locator("#composer").fill("Add them.");
    await page.locator("button[type=submit].send:enabled").click();
    await page.locator(".message.assistant .formula.display math").waitFor();
    expect(await page.evaluate(() => [...(globalThis as unknown as { seen: Set<string> }).seen])).toEqual([]);
    expect(pageErrors).toEqual([]);
  }, 60_000);
}

export const formulaCases = [formulas] as const;
