/** Guidance: a fitting model, a searched message, a registry without TLS, a gateway that is off. */
import { expect, test } from "bun:test";
import { mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import type { Page } from "playwright-core";
import { LANGUAGES } from "../../src/page/app/words/index.ts";
import { makeFindAsset, pageFiles } from "../../src/page/assets.ts";
import { eventually, startHearth } from "../e2e/hearth.ts";
import { violationsOf } from "./axe.ts";
import { importChat } from "./import-chat.ts";
import { keepShot, NARROW, openPage, seekingOf, watched, watchSeeking, type World } from "./page.ts";

interface Listed {
  readonly name: string;
  readonly size: number;
  readonly capabilities?: readonly string[];
}

/** Replaces the page's list of models: one newer than the server's, and older ones. */
async function listModels(page: Page, others: readonly Listed[]): Promise<void> {
  await page.route("**/api/tags", async (route) => {
    const { models } = (await (await route.fetch()).json()) as { models: object[] };
    const more = others.map((each) => ({ ...models.at(-1), ...each }));
    await route.fulfill({ json: { models: [...more.slice(0, 1), ...models, ...more.slice(1)] } });
  });
  await page.reload();
}

function modelMenu(world: () => World): void {
  test("the model menu lists models that can chat, with their capabilities; a new chat uses the best", async () => {
    const { page, pageErrors } = await openPage(world().browser, `${world().hearth.url}/ui`);
    await page.getByText(/^This is a demo model of 6\.3 MB\./).waitFor();
    await listModels(page, [
      { name: "embedder:latest", size: 45e6, capabilities: ["embedding"] },
      { name: "registry.example/owner/seer:4b", size: 2.5e9, capabilities: ["completion", "vision", "thinking"] },
    ]);
    const button = page.getByRole("button", { name: "Model: seer:4b", exact: true });
    await button.waitFor(); // neither the newest, nor the demo
    expect(await page.getByText(/^This is a demo model/).count()).toBe(0);
    await button.click();
    const panel = page.getByRole("dialog", { name: "Choose a model" });
    const seer = panel.getByRole("button", { name: /^seer:4b/ });
    expect(await seer.getByRole("img").evaluateAll((all) => all.map((each) => each.ariaLabel))).toEqual([
      "can see pictures",
      "can think before it answers",
    ]);
    expect(await seer.innerText()).toContain("2.5 GB");
    expect(await panel.getByText("embedder").count()).toBe(0);
    expect(await panel.getByText("on the server", { exact: true }).isVisible()).toBe(false); // until it is opened
    expect(await violationsOf(page)).toEqual([]);
    await keepShot(page, "model-menu-1440");
    await page.keyboard.press("ArrowUp");
    await page.keyboard.press("Enter");
    await page.getByRole("button", { name: "Model: hearth", exact: true }).waitFor();
    await page.reload();
    await page.getByRole("button", { name: "Model: hearth", exact: true }).waitFor(); // the one of the last choice
    expect(pageErrors).toEqual([]);
  }, 60_000);

  test("a chat whose model is missing or cannot chat offers others before a message is sent", async () => {
    const { page, pageErrors } = await openPage(world().browser, `${world().hearth.url}/ui`);
    await importChat(page, "Left", ["Hello.", "Hello, too."], () => ({}), "gone:latest");
    await page.getByRole("alert").getByText("gone is no longer on the server.").waitFor();
    await listModels(page, [{ name: "gone:latest", size: 45e6, capabilities: ["embedding"] }]);
    await page.getByRole("alert").getByText("gone cannot chat: it makes embeddings.").waitFor();
    await page.getByRole("button", { name: "Use hearth" }).click();
    await page.getByRole("alert").waitFor({ state: "detached" });
    expect(pageErrors).toEqual([]);
  }, 60_000);
}

function search(world: () => World): void {
  test("a search result opens at its message, and marks it", async () => {
    const { page, pageErrors } = await openPage(world().browser, `${world().hearth.url}/ui`);
    const texts = Array.from({ length: 1000 }, (_, i) => `Part number ${i}.\n\n${"Some words. ".repeat(20)}`);
    await importChat(page, "Found", texts);
    await watchSeeking(page);
    const find = async (number: number): Promise<void> => {
      await page.keyboard.press("Control+k");
      await page.getByRole("combobox", { name: "Search chats" }).fill(`number ${number}.`);
      await page.locator("#found-0 mark").waitFor();
      await page.keyboard.press("Enter");
      const found = page.locator(".message", { hasText: `Part number ${number}.` });
      // it scrolls again, since rendering the messages around this one moves it
      const isOver = async (): Promise<boolean> => {
        const { marks, scrolls } = await seekingOf(found);
        return marks > 0 && scrolls >= 3;
      };
      expect([number, await eventually(isOver)]).toEqual([number, true]);
      const isInView = (): Promise<boolean> =>
        found.evaluate((each) => {
          const { top, bottom } = each.getBoundingClientRect();
          const log = document.querySelector(".log")!.getBoundingClientRect();
          return top >= log.top && bottom <= log.bottom;
        });
      expect([number, await eventually(isInView)]).toEqual([number, true]);
    };
    await find(500);
    await find(20); // in the open chat
    await page.getByRole("button", { name: "New chat" }).click();
    await find(700); // from elsewhere
    expect(pageErrors).toEqual([]);
  }, 60_000);
}

function withoutTls(world: () => World): void {
  test("a failed download from a registry without TLS offers to retry without it", async () => {
    const registry = Bun.serve({ port: 0, hostname: "127.0.0.1", fetch: () => new Response("none", { status: 404 }) });
    try {
      const { page, pageErrors } = await openPage(world().browser, `${world().hearth.url}/ui#/models`);
      const name = `127.0.0.1:${registry.port}/owner/plain:1b`;
      await page.getByRole("textbox", { name: "Name of a model to download" }).fill(name);
      await page.keyboard.press("Enter");
      const without = page.getByRole("button", { name: "Download without TLS" });
      await without.waitFor({ timeout: 60_000 });
      expect(await page.locator(".card .problem").innerText()).not.toContain("'insecure'");
      await without.click();
      await without.waitFor({ state: "detached" });
      await page.locator(".card .problem", { hasText: /not (exist|found)|404/i }).waitFor(); // the request used HTTP
      await page.getByRole("button", { name: "Remove" }).click();
      await page.locator(".notice").getByRole("button", { name: "Undo" }).click();
      await page.getByRole("button", { name: "Resume" }).waitFor();
      expect(pageErrors).toEqual([]);
    } finally {
      await registry.stop(true);
    }
  }, 120_000);
}

function gatewayOff(world: () => World): void {
  test("without a gateway the page shows how to turn it on, and makes no request that fails", async () => {
    const home = mkdtempSync(join(tmpdir(), "hearth-ui-off-"));
    const hearth = await startHearth({ home });
    try {
      const { page, pageErrors } = await openPage(world().browser, `${hearth.url}/ui#/gateway`);
      const refused: string[] = [];
      page.on("response", (response) => void (response.status() >= 400 && refused.push(response.url())));
      await page.getByRole("heading", { name: "Let other systems wake a model" }).waitFor();
      expect(await violationsOf(page)).toEqual([]);
      await keepShot(page, "gateway-off-1440");
      const config = Bun.JSON5.parse(await page.locator(".off pre").innerText());
      expect(Object.keys(config as object)).toEqual(["gateway", "hooks", "channels", "agents"]);
      await page.getByRole("link", { name: "System" }).click();
      await page.getByText("Answers at once per model").waitFor();
      expect(await page.locator("[title=HEARTH_NUM_PARALLEL]").innerText()).toBe(
        "Answers at once per model\nautomatic",
      );
      expect(refused).toEqual([]);
      expect(await page.getByText("hooks-admin").count()).toBe(0);
      await page.getByRole("button", { name: "Help" }).click();
      expect(await violationsOf(page)).toEqual([]);
      await page.getByRole("dialog", { name: "Help" }).getByRole("button", { name: "Keyboard" }).click();
      await page.getByRole("dialog", { name: "Keyboard" }).waitFor();
      expect(pageErrors).toEqual([]);
    } finally {
      await hearth.stop();
      rmSync(home, { recursive: true, force: true });
    }
  }, 60_000);
}

/** Touch targets smaller than a finger, with their sizes. */
const smallTargets = (page: Page): Promise<string[]> =>
  page.evaluate(() => {
    const targets = [...document.querySelectorAll<HTMLElement>("button, a, summary, select, input, textarea")];
    return targets.flatMap((each) => {
      const touched = each.matches('[type="checkbox"]') ? (each.closest("label") ?? each) : each;
      const { width, height } = touched.getBoundingClientRect();
      if (!each.checkVisibility() || width <= 2 || (width >= 44 && height >= 44)) return [];
      return [`${each.ariaLabel ?? each.textContent}: ${Math.round(width)} × ${Math.round(height)}`];
    });
  });

function touch(world: () => World): void {
  test("on a touch screen controls have at least 44 pixels, and text is 16 pixels from the edge", async () => {
    const { hearth, browser } = world();
    const context = await browser.newContext({ viewport: NARROW, hasTouch: true, isMobile: true });
    const page = await watched(context, []);
    await page.goto(`${hearth.url}/ui`);
    await page.locator("#composer").fill("Who are you?");
    expect(["new", await smallTargets(page)]).toEqual(["new", []]);
    await page.locator("button[type=submit].send:enabled").click();
    await page.locator(".message.assistant .about").waitFor();
    expect(["chat", await smallTargets(page)]).toEqual(["chat", []]);
    const leftOf = (selector: string): Promise<number> =>
      page
        .locator(selector)
        .first()
        .evaluate((each) => each.getBoundingClientRect().left);
    expect([await leftOf(".message.assistant"), await leftOf(".composer")]).toEqual([16, 16]);
    await page.getByRole("button", { name: "Chats and views" }).click();
    expect(await page.locator(".sidebar kbd").isVisible()).toBe(false);
    for (const view of ["models", "gateway", "system"]) {
      await page.goto(`${hearth.url}/ui#/${view}`);
      await page.locator(".view-body > *").first().waitFor();
      expect([view, await smallTargets(page)]).toEqual([view, []]);
      expect([view, await leftOf(".view-body > *")]).toEqual([view, 16]);
    }
  }, 60_000);

  test("a question and its answer are 20 pixels apart, pairs 44", async () => {
    const { page } = await openPage(world().browser, `${world().hearth.url}/ui`);
    await importChat(page, "Pairs", ["One?", "One.", "Two?", "Two."]);
    const gaps = await page.locator(".message").evaluateAll((all) => {
      const bubbles = all.map((each) => each.querySelector(".body")!.getBoundingClientRect());
      const [question, answer, next] = [0, 1, 2].map((i) => bubbles[i]!);
      return [answer!.top - question!.bottom, next!.top - all[1]!.getBoundingClientRect().bottom];
    });
    expect(gaps.map(Math.round)).toEqual([20, 44]);
  }, 60_000);
}

function size(): void {
  test("the page loads less than 120 kB, compressed, in any language, before a chat needs more", async () => {
    const find = makeFindAsset();
    const fetched = new Map<string, number>();
    const fetchAll = async (name: string): Promise<void> => {
      const asset = await find(name);
      if (!asset || fetched.has(name)) return;
      fetched.set(name, asset.gzipped().length);
      const imported = asset.text.matchAll(/(?:src|href)="ui\/([^"]+)"|(?:from|import)\s*"\.\/([^"]+)"/g);
      for (const [, ofPage, ofScript] of imported) await fetchAll((ofPage ?? ofScript)!);
    };
    await fetchAll("");
    expect(fetched.size).toBeGreaterThan(3);
    const page = [...fetched.values()].reduce((a, b) => a + b);
    const files = Object.entries(await pageFiles());
    for (const { load } of Object.values(LANGUAGES)) {
      const { title } = (await load()).welcome;
      const [name] = files.find(([, { text }]) => text.includes(title))!;
      const language = fetched.has(name) ? 0 : (await find(name))!.gzipped().length;
      expect(page + language).toBeLessThan(120_000);
    }
  }, 60_000);
}

export const findingCases = [touch, size, modelMenu, search, withoutTls, gatewayOff] as const;
