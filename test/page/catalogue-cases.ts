/** The catalogue: models that fit, with one click, and three suggestions if only the demo model is installed. */
import { expect, test } from "bun:test";
import type { Page } from "playwright-core";
import { violationsOf } from "./axe.ts";
import { keepShot, NARROW, openPage, WIDE, type World } from "./page.ts";

/** Fakes a pull from the registry, which tests cannot reach, line by line. */
async function answerPulls(page: Page): Promise<{ finish(): void; asked: string[] }> {
  let finish: () => void = () => {};
  const finished = new Promise<void>((resolve) => (finish = resolve));
  const asked: string[] = [];
  await page.addInitScript(() => {
    const { fetch: ask } = globalThis;
    const answer = async (input: string | URL | Request, init?: RequestInit): Promise<Response> => {
      if (!String(input).endsWith("/api/pull")) return ask(input, init);
      const line = JSON.stringify({ status: "pulling", digest: "sha256:a", total: 4e8, completed: 1e8 });
      const rest = ask(input, init);
      const body = new ReadableStream<Uint8Array>({
        async start(controller) {
          controller.enqueue(new TextEncoder().encode(`${line}\n`));
          controller.enqueue(new Uint8Array(await (await rest).arrayBuffer()));
          controller.close();
        },
      });
      return new Response(body);
    };
    Object.assign(globalThis, { fetch: answer });
  });
  await page.route("**/api/pull", async (route) => {
    asked.push((route.request().postDataJSON() as { model: string }).model);
    await finished;
    await route.fulfill({ body: '{"status":"success"}\n' });
  });
  return { finish, asked };
}

function firstRun(world: () => World): void {
  test("an empty chat suggests three models that fit, each with a download button, if only the demo model is installed", async () => {
    for (const viewport of [WIDE, NARROW]) {
      const { page, pageErrors } = await openPage(world().browser, `${world().hearth.url}/ui`, viewport);
      const pulls = await answerPulls(page);
      await page.reload();
      const cards = page.getByRole("list", { name: "Suggested models" }).getByRole("listitem");
      await cards.nth(2).waitFor();
      expect(await cards.count()).toBe(3);
      expect(await cards.first().innerText()).toMatch(/\d (GB|MB)[\s\S]*Fits: [\d.,]+ GB of memory is free\./);
      for (const colorScheme of ["light", "dark"] as const) {
        await page.emulateMedia({ colorScheme });
        expect(await violationsOf(page)).toEqual([]);
      }
      await keepShot(page, `first-run-${viewport.width}`);
      expect(await page.evaluate(() => document.documentElement.scrollWidth)).toBeLessThanOrEqual(viewport.width);
      await cards
        .first()
        .getByRole("button", { name: /^Download / })
        .click();
      await cards
        .first()
        .getByText(/^Downloading · 100 MB of 400 MB/)
        .waitFor();
      expect(await cards.first().getByRole("progressbar").count()).toBe(1);
      pulls.finish();
      await cards.first().getByText("Downloaded.").waitFor();
      expect(pulls.asked.length).toBe(1);
      await page.goto(`${world().hearth.url}/ui#/models`);
      await page.reload(); // the catalogue is shown before the list of models
      await page.locator("details[aria-label=Catalogue][open] li").first().waitFor();
      expect(pageErrors).toEqual([]);
    }
  }, 60_000);
}

function catalogue(world: () => World): void {
  test("the catalogue shows by purpose what models can do, whether they fit, and which are installed", async () => {
    for (const viewport of [WIDE, NARROW]) {
      const { page, pageErrors } = await openPage(world().browser, `${world().hearth.url}/ui#/models`, viewport);
      await page.route("**/api/catalogue", async (route) => {
        const list = (await (await route.fetch()).json()) as { models: { name: string }[] };
        const models = list.models.map((each, i) =>
          i === 1
            ? { ...each, fits: "tight", reason: "needs 9.0 GB of memory; 2.0 GB are free now" }
            : i === 2
              ? { ...each, fits: "no", reason: "needs 90.0 GB of memory; this machine has 8.0 GB" }
              : each,
        );
        await route.fulfill({ json: { ...list, models } });
      });
      await page.route("**/api/tags", async (route) => {
        const { models } = (await (await route.fetch()).json()) as { models: object[] };
        await route.fulfill({ json: { models: [...models, { ...models[0], name: "gemma3:270m" }] } });
      });
      await page.reload();
      const section = page.getByRole("group", { name: "Catalogue" });
      if (!(await section.getAttribute("open").then((open) => open !== null))) await section.locator("summary").click();
      const cards = section.getByRole("listitem");
      await cards.nth(20).waitFor();
      expect(await cards.nth(0).innerText()).toContain("installed");
      expect(await cards.nth(0).getByRole("button").innerText()).toBe("Chat");
      expect(await cards.nth(1).innerText()).toContain("Tight: needs 9.0 GB of memory; 2.0 GB are free now.");
      expect(
        await cards
          .nth(1)
          .getByRole("img")
          .evaluateAll((all) => all.map((each) => each.ariaLabel)),
      ).toEqual(["can call tools", "can think before it answers"]);
      expect(await cards.nth(2).innerText()).toContain(
        "Does not fit: needs 90.0 GB of memory; this machine has 8.0 GB.",
      );
      expect(await cards.nth(2).getByRole("button").isDisabled()).toBe(true);
      for (const colorScheme of ["light", "dark"] as const) {
        await page.emulateMedia({ colorScheme });
        expect(await violationsOf(page)).toEqual([]);
      }
      await keepShot(page, `catalogue-${viewport.width}`);
      expect(await page.evaluate(() => document.documentElement.scrollWidth)).toBeLessThanOrEqual(viewport.width);
      const all = await cards.count();
      await section.getByRole("button", { name: "Embeddings" }).click();
      const list = (await (await fetch(`${world().hearth.url}/api/catalogue`)).json()) as {
        models: { purpose: string }[];
      };
      expect(await cards.count()).toBe(list.models.filter(({ purpose }) => purpose === "embedding").length);
      expect(await cards.count()).toBeLessThan(all);
      expect(pageErrors).toEqual([]);
    }
  }, 60_000);
}

export const catalogueCases = [firstRun, catalogue] as const;
