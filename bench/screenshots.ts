/**
 * Takes the pictures of the page in docs/images: four views at 1,440 and at 390 pixels. Times and the figures of the
 * machine are fixed, so that a picture changes only with the page.
 *
 *   bun bench/screenshots.ts
 */
import { mkdtempSync, rmSync, statSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import type { BrowserContext, Page, Route } from "playwright-core";
import { ask, GATEWAY_TOKEN, HOOK_TOKEN, startWorld, watched, type World } from "../test/page/page.ts";

const IMAGES = join(import.meta.dir, "../docs/images");
const BYTES_MAX = 150_000;
const NOW = Date.UTC(2026, 0, 15, 10, 30);
const SIZES = [
  { suffix: "", viewport: { width: 1440, height: 810 }, colorScheme: "light" },
  { suffix: "-390", viewport: { width: 390, height: 844 }, colorScheme: "dark" },
] as const;

type Json = Record<string, unknown>;

/** Changes fields of the server's answer on a path. */
async function change(context: BrowserContext, path: string, fields: (answer: Json) => Json): Promise<void> {
  await context.route(`**${path}`, async (route: Route) => {
    const answer = (await (await route.fetch()).json()) as Json;
    await route.fulfill({ json: { ...answer, ...fields(answer) } });
  });
}

/** Makes answers greedy, with a fixed rate. */
async function fixAnswers(context: BrowserContext): Promise<void> {
  await context.route("**/api/chat", async (route) => {
    const postData = { ...(route.request().postDataJSON() as Json), options: { temperature: 0 } };
    const lines = (await (await route.fetch({ postData })).text()).trim().split("\n");
    const fixed = lines.map((line) => {
      const said = JSON.parse(line) as Json & { eval_count?: number };
      return JSON.stringify(said["done"] ? { ...said, eval_duration: (said.eval_count ?? 1) * 2e6 } : said);
    });
    await route.fulfill({ body: fixed.join("\n") });
  });
}

async function fixFigures(context: BrowserContext): Promise<void> {
  const listOf = (answer: Json, name: string): Json[] => answer[name] as Json[];
  await change(context, "/api/ps", (answer) => ({
    models: listOf(answer, "models").map((each) => ({ ...each, expires_at: new Date(NOW + 300_000).toISOString() })),
  }));
  await change(context, "/api/system", (answer) => ({
    device: "CPU (8 cores)",
    memory: { total: 32e9, available: 21e9 },
    settings: { ...(answer["settings"] as Json), host: "127.0.0.1:11434" },
    activity: { running: 0, waiting: 0, load: 1, crash: 0 },
  }));
  const asked = { method: "POST", path: "/api/chat", status: 200, model: "hearth:latest" };
  await change(context, "/api/requests", () => ({
    requests: [
      { ...asked, at: NOW - 20_000, ms: 358, promptTokens: 51, tokens: 133 },
      { ...asked, at: NOW - 40_000, ms: 78, promptTokens: 12, tokens: 19 },
    ],
  }));
  await change(context, "/health", () => ({ disk: { free: 250e9 } }));
}

async function shoot(page: Page, name: string): Promise<void> {
  await page.mouse.move(0, 0);
  await page.evaluate(() => document.fonts.ready);
  const path = join(IMAGES, `${name}.png`);
  await page.screenshot({ path, animations: "disabled", caret: "hide" });
  const { size } = statSync(path);
  console.log(`${name}.png ${size} bytes`);
  if (size > BYTES_MAX) throw new Error(`${name}.png: ${size} bytes, at most ${BYTES_MAX}`);
}

async function shootViews({ hearth, browser }: World, size: (typeof SIZES)[number]): Promise<void> {
  const { suffix, ...look } = size;
  const context = await browser.newContext({ ...look, locale: "en-US", timezoneId: "UTC" });
  await context.clock.setFixedTime(NOW);
  await fixAnswers(context);
  await fixFigures(context);
  const page = await watched(context, []);
  await page.goto(`${hearth.url}/ui`);
  await ask(page, "Hello! Who are you?");
  await ask(page, "Tell me a story about a fox.");
  await shoot(page, `chat${suffix}`);
  await page.goto(`${hearth.url}/ui#/models`);
  await page.getByText(/^In memory: /).waitFor();
  await shoot(page, `models${suffix}`);
  await page.goto(`${hearth.url}/ui#/gateway`);
  await page.getByRole("textbox", { name: "Gateway token" }).fill(GATEWAY_TOKEN);
  await page.keyboard.press("Enter");
  await page.locator(".row-button").nth(2).waitFor();
  await shoot(page, `gateway${suffix}`);
  await page.goto(`${hearth.url}/ui#/system`);
  await page.getByText("CPU (8 cores)").waitFor();
  await page.getByRole("cell", { name: "POST /api/chat" }).first().waitFor();
  await shoot(page, `system${suffix}`);
  await context.close();
}

const home = mkdtempSync(join(tmpdir(), "hearth-screenshots-"));
const world = await startWorld(home);
try {
  const headers = { authorization: `Bearer ${HOOK_TOKEN}`, prefer: "wait=30" };
  for (const n of [41, 42, 43]) {
    await fetch(`${world.hearth.url}/hooks/ci`, { method: "POST", headers, body: JSON.stringify({ n }) });
  }
  for (const size of SIZES) await shootViews(world, size);
} finally {
  await world.browser.close();
  await world.hearth.stop();
  rmSync(home, { recursive: true, force: true });
}
