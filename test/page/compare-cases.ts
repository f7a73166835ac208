/** Several models answer one question side by side, until one answer is chosen. */
import { expect, test } from "bun:test";
import type { Page } from "playwright-core";
import { violationsOf } from "./axe.ts";
import { ask, keepShot, NARROW, openPage, send, WIDE, type World } from "./page.ts";

const columns = (page: Page) => page.locator(".columns .column");

async function withModels(world: World, names: readonly string[]): Promise<void> {
  for (const destination of names)
    await (await world.hearth.post("/api/copy", { source: "hearth", destination })).text();
}

async function withoutModels({ hearth }: World, names: readonly string[]): Promise<void> {
  for (const model of names) {
    const headers = { "content-type": "application/json" };
    await fetch(`${hearth.url}/api/delete`, { method: "DELETE", headers, body: JSON.stringify({ model }) });
  }
}

/** `left` is the model of the chat, and `right` answers, too. */
async function choose(page: Page): Promise<void> {
  await page.getByRole("button", { name: /^Model: / }).click();
  await page.getByRole("dialog").getByRole("button", { name: /^left/ }).click();
  await page.getByRole("button", { name: "Answers side by side" }).click();
  await page.getByRole("checkbox", { name: "right" }).check();
  expect(await violationsOf(page)).toEqual([]);
  await page.keyboard.press("Escape");
}

/** No axe rule is broken at either width in either colour; leaves the page narrow. */
async function lookAt(page: Page): Promise<void> {
  for (const viewport of [WIDE, NARROW]) {
    await page.setViewportSize(viewport);
    for (const colorScheme of ["light", "dark"] as const) {
      await page.emulateMedia({ colorScheme });
      expect(await violationsOf(page)).toEqual([]);
    }
    await keepShot(page, `compare-${viewport.width}`);
    expect(await page.evaluate(() => document.documentElement.scrollWidth)).toBeLessThanOrEqual(viewport.width);
  }
}

function sideBySide(world: () => World): void {
  test("two models answer at once; the chosen answer continues the chat, the other is a branch", async () => {
    await withModels(world(), ["left", "right"]);
    const { page, pageErrors } = await openPage(world().browser, `${world().hearth.url}/ui`);
    await choose(page);
    await page.getByText("Also answers: right").waitFor();

    let open = 0;
    const both = Promise.withResolvers<void>();
    await page.route("**/api/chat", async (route) => {
      if (++open === 2) both.resolve();
      await both.promise; // neither waits for the other
      await route.continue();
    });
    await send(page, "Who are you?");
    await columns(page).nth(1).locator(".about").waitFor();
    await columns(page).nth(0).locator(".about").waitFor();
    expect(open).toBe(2);
    await page.unroute("**/api/chat");
    expect(await columns(page).locator(".about").allInnerTexts()).toEqual([
      expect.stringMatching(/^left /),
      expect.stringMatching(/^right /),
    ]);
    const boxOf = async (i: number) => (await columns(page).nth(i).boundingBox())!;
    expect((await boxOf(1)).x).toBeGreaterThan((await boxOf(0)).x);
    await lookAt(page);
    expect((await boxOf(1)).y).toBeGreaterThan((await boxOf(0)).y); // stacked
    await page.setViewportSize(WIDE);
    await page.reload(); // they are kept
    await columns(page).nth(1).waitFor();
    await page.getByRole("button", { name: "Continue with this answer of right" }).click();
    await columns(page).first().waitFor({ state: "detached" });
    await page.locator(".branches", { hasText: "2 / 2" }).waitFor();
    await page.locator(".about", { hasText: /^right / }).waitFor();
    await page.getByRole("button", { name: "Previous version" }).click();
    await page.locator(".about", { hasText: /^left/ }).waitFor();
    await ask(page, "And you?"); // the page was reloaded: one model answers
    expect(await page.locator(".message.assistant").count()).toBe(2);
    expect(pageErrors).toEqual([]);
    await withoutModels(world(), ["left", "right"]);
  }, 90_000);
}

function ended(world: () => World): void {
  test("an error is shown beside the other model's answer; Stop ends both; the next question follows the first answer", async () => {
    await withModels(world(), ["left", "right"]);
    const { page, pageErrors } = await openPage(world().browser, `${world().hearth.url}/ui`);
    await choose(page);
    const isRight = (body: unknown): boolean => (body as { model: string }).model.startsWith("right");
    await page.route("**/api/chat", (route) =>
      isRight(route.request().postDataJSON())
        ? route.fulfill({ status: 500, json: { error: "it broke" } })
        : route.continue(),
    );
    await send(page, "Hello?");
    await columns(page).nth(1).getByRole("alert").getByText("it broke").waitFor();
    await columns(page).nth(0).locator(".about").waitFor();
    await page.unroute("**/api/chat");
    await page.route("**/api/chat", () => {}); // no answer arrives
    await send(page, "And now?");
    await page.getByRole("button", { name: "Stop" }).click();
    await page.waitForFunction(() => document.querySelectorAll(".column .ended").length === 2);
    expect(await page.locator(".message.assistant").count()).toBe(3); // the first of before, and two
    await page.getByRole("button", { name: "Turn off" }).click();
    await page.getByText("Also answers").waitFor({ state: "detached" });
    expect(pageErrors).toEqual([]);
    await withoutModels(world(), ["left", "right"]);
  }, 90_000);
}

export const compareCases = [sideBySide, ended] as const;
