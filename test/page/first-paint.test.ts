/** The page before its style and script have arrived, as on a slow network. */
import { afterAll, beforeAll, describe, expect, setDefaultTimeout, test } from "bun:test";
import type { Browser } from "playwright-core";
import { browserRefusal } from "./engine/chromium.ts";
import { startHearth, type Hearth } from "../e2e/hearth.ts";
import { startBrowser, watched } from "./page.ts";

setDefaultTimeout(120_000);

const refusal = await browserRefusal();

describe.skipIf(refusal !== undefined)(`the page before its style loads${refusal ? ` (${refusal})` : ""}`, () => {
  let hearth: Hearth;
  let browser: Browser;
  let url: string;
  beforeAll(async () => {
    [hearth, browser] = await Promise.all([startHearth(), startBrowser()]);
    ({ url } = hearth);
    await (await fetch(`${url}/ui`)).text(); // builds it
  });
  afterAll(async () => {
    await browser.close();
    await hearth.stop();
  });

  test.each([
    ["light", "rgb(250, 248, 245)"],
    ["dark", "rgb(23, 21, 19)"],
  ] as const)("has its %s colours, and its name until the page is drawn", async (colorScheme, ground) => {
    const context = await browser.newContext({ colorScheme });
    const pageErrors: string[] = [];
    const page = await watched(context, pageErrors);
    const held = Promise.withResolvers<void>();
    await page.route(/\.(css|js)$/, async (route) => {
      await held.promise;
      await route.continue();
    });
    await page.goto(`${url}/ui`, { waitUntil: "commit" });
    await page.locator("#app").waitFor({ state: "attached" });
    const look = () =>
      page.evaluate(() => [
        getComputedStyle(document.documentElement).backgroundColor,
        getComputedStyle(document.getElementById("app")!, "::before").content,
      ]);
    expect(await look()).toEqual([ground, '"Hearth"']);
    await page.waitForFunction(() => performance.getEntriesByName("first-paint").length > 0);
    held.resolve();
    await page.locator("#main").waitFor();
    expect(await look()).toEqual([ground, "none"]);
    expect(pageErrors).toEqual([]);
    await context.close();
  });
});
