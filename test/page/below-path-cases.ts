/** The page behind a proxy that serves Hearth below a path. */
import { expect, test } from "bun:test";
import { hasNginx, startNginx } from "../e2e/nginx.ts";
import { ask, choosePlace, openPage, type World } from "./page.ts";

function belowPath(world: () => World): void {
  test.skipIf(!hasNginx)(
    "the page below a path of nginx loads, answers, runs models and shows the API as at the root",
    async () => {
      const { hearth, browser } = world();
      const nginx = await startNginx(`location /hearth/ { proxy_pass ${hearth.url}/; }`);
      try {
        const root = `http://127.0.0.1:${nginx.port}/hearth/`;
        const { page, context, pageErrors } = await openPage(browser, root);
        const asked: string[] = [];
        context.on("response", (response) => asked.push(`${response.status()} ${new URL(response.url()).pathname}`));
        await page.goto(`${root}ui`);
        await page.evaluate(() => localStorage.setItem("hearth-backend", "wasm"));
        await page.reload();
        await ask(page, "Hello! Who are you?");
        await choosePlace(page, "in this page");
        await ask(page, "Tell me a story.");
        expect(await page.locator(".about").last().innerText()).toContain("in this page");
        expect(asked.some((each) => /^20\d \/hearth\/api\/blobs\//.test(each))).toBe(true);
        await page.goto(`${root}docs`);
        await page.getByText("/api/chat").first().waitFor();
        expect(asked.filter((each) => !/^(20\d|304) \/hearth\//.test(each))).toEqual([]);
        expect(pageErrors).toEqual([]);
      } finally {
        await nginx.stop();
      }
    },
    60_000,
  );
}

export const belowPathCases = [belowPath];
