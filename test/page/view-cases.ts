/** Every view in both colours, at a width that the seed draws: used, saved as a screenshot, and checked by axe. */
import { expect, test } from "bun:test";
import type { Page } from "playwright-core";
import { eventually } from "../e2e/hearth.ts";
import { drawn } from "../seed.ts";
import { violationsOf } from "./axe.ts";
import { ask, GATEWAY_TOKEN, HOOK_TOKEN, keepShot, NARROW, openPage, WIDE, type Watched, type World } from "./page.ts";

const SIZES = [
  { viewport: WIDE, colorScheme: "light" },
  { viewport: NARROW, colorScheme: "dark" },
] as const;

type Size = (typeof SIZES)[number];

const nameOf = ({ viewport, colorScheme }: Size): string => `${viewport.width}-${colorScheme}`;

async function openView(world: World, size: Size, view: string): Promise<Watched> {
  const opened = await openPage(world.browser, `${world.hearth.url}/ui#/${view}`, size.viewport);
  await opened.page.emulateMedia({ colorScheme: size.colorScheme });
  return opened;
}

/** No axe rule is broken in either colour, and nothing is wider than the page. */
async function lookAt(page: Page, size: Size, view: string): Promise<void> {
  for (const colorScheme of [size.colorScheme === "light" ? "dark" : "light", size.colorScheme] as const) {
    await page.emulateMedia({ colorScheme });
    expect([view, colorScheme, await violationsOf(page)]).toEqual([view, colorScheme, []]);
  }
  await keepShot(page, `${view}-${nameOf(size)}`);
  expect(await page.evaluate(() => document.documentElement.scrollWidth)).toBeLessThanOrEqual(size.viewport.width);
}

function chats(world: () => World, size: Size): void {
  test(`chats at ${nameOf(size)} fit and pass axe: an answer, its settings, the list of chats, the keys`, async () => {
    const { page, pageErrors } = await openView(world(), size, "chat");
    await lookAt(page, size, "chat-new");
    await ask(page, "Write **two** lines of code.");
    await lookAt(page, size, "chat");
    await page.keyboard.press("Control+,");
    await page.getByRole("textbox", { name: "System prompt" }).waitFor();
    await lookAt(page, size, "chat-settings");
    await page.keyboard.press("Escape");
    await page.locator("dialog").waitFor({ state: "detached" });
    if (size.viewport === NARROW) await page.getByRole("button", { name: "Chats and views" }).click();
    await page.getByRole("button", { name: /^More about Write/ }).click();
    await lookAt(page, size, "chat-list");
    await page.getByRole("menuitem", { name: "Rename" }).click();
    await page.getByRole("textbox", { name: "Name of the chat" }).fill("Two lines");
    await page.keyboard.press("Enter");
    await page.getByRole("link", { name: "Two lines" }).waitFor();
    if (size.viewport === NARROW) await page.keyboard.press("Escape");
    await page.locator(".message.assistant").click();
    await page.keyboard.press("?");
    await page.getByRole("dialog", { name: "Keyboard" }).waitFor();
    await lookAt(page, size, "keys");
    expect(pageErrors).toEqual([]);
  }, 120_000);
}

function models(world: () => World, size: Size): void {
  test(`models at ${nameOf(size)} fit and pass axe: loaded, shown, copied, created, deleted, and a failed pull`, async () => {
    await (await world().hearth.post("/api/generate", { model: "hearth", keep_alive: 0 })).text();
    const { page, pageErrors } = await openView(world(), size, "models");
    const more = async (model: string, item: string): Promise<void> => {
      await page.getByRole("button", { name: `More about ${model}` }).click();
      await page.getByRole("menuitem", { name: item }).click();
    };
    await more("hearth:latest", "Load now");
    await page.getByRole("group", { name: "Models in this page" }).locator("summary").click();
    await page.getByText(/^In memory: .* context of 2,048 tokens · unloads in 5 minutes/).waitFor();
    await more("hearth:latest", "Copy");
    await page.getByRole("textbox", { name: "Name of the copy" }).fill(`copied-${size.viewport.width}`);
    await lookAt(page, size, "models-copy");
    await page.keyboard.press("Enter");
    await page.getByText(`copied-${size.viewport.width}`).waitFor();
    await page.getByRole("button", { name: "Create", exact: true }).click();
    await page.getByRole("textbox", { name: "Name", exact: true }).fill(`brief-${size.viewport.width}`);
    await lookAt(page, size, "models-create");
    await page.getByRole("dialog").getByRole("button", { name: "Create" }).click();
    await page.getByText("Created.").waitFor();
    await page.getByRole("textbox", { name: "Name of a model to download" }).fill("127.0.0.1:1/none/none");
    await page.keyboard.press("Enter");
    await page.getByRole("button", { name: "Pause" }).click();
    await page.getByText("Paused.").waitFor();
    await lookAt(page, size, "models");
    await page.reload(); // the unfinished download is offered again
    await page.getByRole("button", { name: "Resume" }).waitFor();
    await page.getByRole("button", { name: "Remove" }).click();
    await more(`brief-${size.viewport.width}:latest`, "Details");
    await page.getByText("Architecture").waitFor();
    await lookAt(page, size, "models-show");
    await page.keyboard.press("Escape");
    await page.locator("dialog").waitFor({ state: "detached" });
    for (const model of [`brief-${size.viewport.width}`, `copied-${size.viewport.width}`]) {
      await more(`${model}:latest`, "Delete");
      await page.getByRole("button", { name: `More about ${model}` }).waitFor({ state: "detached" });
      await page
        .locator(".notice", { hasText: `Deleted ${model}` })
        .getByRole("button", { name: "Close" })
        .click();
      expect(await eventually(async () => !(await hasModel(world(), model)))).toBe(true);
    }
    const unloaded = page.waitForResponse((response) => response.url().endsWith("/api/generate"));
    await more("hearth:latest", "Unload");
    expect(await (await unloaded).json()).toMatchObject({ done_reason: "unload" });
    expect(pageErrors).toEqual([]);
  }, 120_000);
}

function gateway(world: () => World, size: Size): void {
  test(`gateway at ${nameOf(size)} fits and passes axe: its token, deliveries, replay, pause, mappings, findings`, async () => {
    const { url } = world().hearth;
    const headers = { authorization: `Bearer ${HOOK_TOKEN}`, prefer: "wait=30" };
    await fetch(`${url}/hooks/ci`, {
      method: "POST",
      headers,
      body: JSON.stringify({ n: "<img src=x onerror=alert(1)>" }),
    });
    const { page, pageErrors } = await openView(world(), size, "gateway");
    const token = page.getByRole("textbox", { name: "Gateway token" });
    await token.fill("wrong");
    await page.keyboard.press("Enter");
    await page.getByText("This token is wrong.").waitFor();
    await lookAt(page, size, "gateway-token");
    await token.fill(GATEWAY_TOKEN);
    await page.keyboard.press("Enter");
    await page.locator(".row-button").first().waitFor();
    await lookAt(page, size, "gateway");
    const before = await page.locator(".row-button").count();
    await page.locator(".row-button").first().click();
    await page.getByText("Body").last().click();
    await page.getByText("<img src=x onerror=alert(1)>").first().waitFor();
    await lookAt(page, size, "gateway-delivery");
    const first = page.url();
    await page.getByRole("button", { name: "Replay", exact: true }).click();
    await page.waitForURL((url) => url.href !== first);
    await page.keyboard.press("Escape");
    expect(await eventually(async () => (await page.locator(".row-button").count()) > before)).toBe(true);
    await page.getByRole("combobox", { name: "State" }).selectOption("failed");
    await page.getByRole("button", { name: "Send all replies again" }).click();
    await page.getByText("without asking the model").waitFor();
    await lookAt(page, size, "gateway-replay");
    await page.locator("dialog").getByRole("button", { name: "Replay", exact: true }).click();
    await page.locator(".notice", { hasText: /Replayed: 0, skipped: [1-9]/ }).waitFor(); // no channel is configured
    await page.getByRole("button", { name: "Pause" }).click();
    await page.getByRole("button", { name: "Resume" }).click();
    await page.getByRole("button", { name: "Pause" }).waitFor();
    await page.getByRole("tab", { name: "Mappings" }).click();
    await page.getByRole("button", { name: "Try it" }).click();
    await page.getByRole("textbox", { name: "Payload, as JSON" }).fill('{"n": 7}');
    await page.getByRole("button", { name: "Try", exact: true }).click();
    await page.locator(".outcome", { hasText: '"outcome": "actions"' }).waitFor();
    await page.getByRole("textbox", { name: /^Headers/ }).fill("no header");
    await page.getByRole("button", { name: "Try", exact: true }).click();
    await page.getByText('"no header" is not a header').waitFor();
    await page.getByRole("textbox", { name: /^Headers/ }).fill("X-Kind: lamp");
    await page.getByRole("button", { name: "Try", exact: true }).click();
    await page.locator(".outcome", { hasText: "7lamp" }).waitFor();
    await lookAt(page, size, "gateway-try");
    await page.keyboard.press("Escape");
    await page.getByRole("tab", { name: "Findings" }).click();
    await page.locator(".row-plain").first().waitFor();
    await lookAt(page, size, "gateway-findings");
    expect(pageErrors).toEqual([]);
  }, 120_000);
}

function system(world: () => World, size: Size): void {
  test(`system at ${nameOf(size)} fits and passes axe: the machine, its settings, the last requests`, async () => {
    const { page, pageErrors } = await openView(world(), size, "system");
    await world().hearth.post("/api/chat", { model: "hearth", stream: false, messages: [] });
    await page.getByText("Backend").first().waitFor();
    await page.getByRole("cell", { name: "POST /api/chat" }).first().waitFor();
    await world().hearth.post("/api/show", { model: "somebody/a-model-with-a-name-that-is-long:8b-instruct-q4_K_M" });
    await page
      .getByRole("cell", { name: /a-model-with-a-name/ })
      .first()
      .waitFor();
    await world().hearth.post(`/api/blobs/sha256:${"0".repeat(64)}`, {}); // a long path is cut
    await page
      .getByRole("cell", { name: /\/api\/blobs\/sha256/ })
      .first()
      .waitFor();
    const isWhole = await page.locator(".table.panel").evaluate((each) => each.scrollWidth <= each.clientWidth);
    expect(isWhole).toBe(size.viewport.width > 1000);
    await lookAt(page, size, "system");
    expect(pageErrors).toEqual([]);
  }, 120_000);
}

async function hasModel({ hearth }: World, name: string): Promise<boolean> {
  const { models } = (await (await fetch(`${hearth.url}/api/tags`)).json()) as { models: { name: string }[] };
  return models.some((each) => each.name === `${name}:latest`);
}

export const viewCases = [chats, models, gateway, system].flatMap((view) =>
  drawn(`sizes of ${view.name}`, SIZES, 1).map((size) => (world: () => World) => view(world, size)),
);
