/**
 * The page in a headless browser, on a real server with the embedded model. Collects the page's errors and policy
 * violations; keeps screenshots where HEARTH_TEST_ARTEFACTS names a folder.
 */
import { mkdirSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { chromium, type Browser, type BrowserContext, type Locator, type Page } from "playwright-core";
import { browserPath } from "../engine/backends/webgpu/swiftshader.ts";
import { FLAGS } from "./engine/chromium.ts";
import { startHearth, type Hearth } from "../e2e/hearth.ts";

export const WIDE = { width: 1440, height: 900 } as const;
export const NARROW = { width: 390, height: 844 } as const;

/** Longest wait for an element: other processes share the processors. */
const WAIT_MS_MAX = 45_000;

/** Folder of screenshots; undefined: none are taken, which saves a tenth of a second each. */
const ARTEFACTS = process.env["HEARTH_TEST_ARTEFACTS"];

/** A server, and a browser that shows it. */
export interface World {
  readonly hearth: Hearth;
  readonly browser: Browser;
  /** Closes the pages that a case left open. */
  closePages(): Promise<void>;
}

export const GATEWAY_TOKEN = "gateway-token-of-24-characters";
export const HOOK_TOKEN = "hook-token-of-24-characters";

/** With a gateway. */
export async function startWorld(home: string): Promise<World> {
  mkdirSync(join(home, ".hearth"), { recursive: true });
  const mappings = [
    { id: "ci", match: { path: "ci" }, messageTemplate: "Build {{payload.n}}{{headers.x-kind | default: ''}}" },
  ];
  mkdirSync(join(home, "files"));
  const example = (name: string, ...args: string[]) => ({
    command: process.execPath,
    args: [join(import.meta.dir, `../../node_modules/@modelcontextprotocol/server-${name}/dist/index.js`), ...args],
  });
  const files = { ...example("filesystem", join(home, "files")), harmless: ["read_text_file"] };
  const settings = {
    mcp: { servers: { everything: example("everything", "stdio"), files } },
    gateway: { token: GATEWAY_TOKEN },
    agents: { defaults: { model: "hearth", heartbeat: { every: 0, target: "none" } } },
    hooks: { enabled: true, token: HOOK_TOKEN, queue: { keepBodies: true }, mappings },
  };
  writeFileSync(join(home, ".hearth/hearth.json5"), JSON.stringify(settings));
  const [hearth, browser] = await Promise.all([startHearth({ home }), startBrowser()]);
  const closePages = async (): Promise<void> =>
    void (await Promise.all(browser.contexts().map((context) => context.close())));
  return { hearth, browser, closePages };
}

export async function startBrowser(): Promise<Browser> {
  return chromium.launch({ executablePath: await browserPath(), args: FLAGS.filter((flag) => flag !== "--headless") });
}

export interface Watched {
  readonly page: Page;
  readonly context: BrowserContext;
  /** Errors, and policy violations. */
  readonly pageErrors: string[];
}

/**
 * A page in a separate browser context. Nothing moves in it: drawing each frame of an animation without a GPU takes
 * the processor time of the server that the page waits for.
 * @param locale its preferred language
 */
export async function openPage(
  browser: Browser,
  url: string,
  viewport: { width: number; height: number } = WIDE,
  locale = "en-US",
): Promise<Watched> {
  const context = await browser.newContext({ viewport, locale, reducedMotion: "reduce" });
  context.setDefaultTimeout(WAIT_MS_MAX);
  const pageErrors: string[] = [];
  const page = await watched(context, pageErrors);
  await page.goto(url);
  await page.locator("#main").waitFor();
  return { page, context, pageErrors };
}

/** Another page of the same browser. */
export async function watched(context: BrowserContext, pageErrors: string[]): Promise<Page> {
  const page = await context.newPage();
  page.on("pageerror", (error) => pageErrors.push(String(error.stack ?? error)));
  page.on("console", (message) => {
    if (/Content.Security.Policy|TrustedScript|Trusted Type/i.test(message.text())) pageErrors.push(message.text());
  });
  await page.addInitScript(() => {
    document.addEventListener("securitypolicyviolation", (event) =>
      console.error(`Content-Security-Policy: ${event.violatedDirective} ${event.blockedURI} ${event.sample}`),
    );
  });
  return page;
}

interface Seeking {
  /** Elements that were marked with an animation, and elements that the page scrolled to, once for each time. */
  readonly marked: Element[];
  readonly scrolledTo: Element[];
}

/** Records from here on which elements the page marks and scrolls to: on a slow machine a mark may be over unseen. */
export const watchSeeking = (page: Page): Promise<void> =>
  page.evaluate(() => {
    const [marked, scrolledTo]: [Element[], Element[]] = [[], []];
    const { animate, scrollIntoView } = Element.prototype;
    Element.prototype.animate = function (...given) {
      marked.push(this);
      return animate.apply(this, given);
    };
    Element.prototype.scrollIntoView = function (...given) {
      scrolledTo.push(this);
      return scrollIntoView.apply(this, given);
    };
    Object.assign(globalThis, { marked, scrolledTo } satisfies Seeking);
  });

/** Counts the marks of an element, and how many times the page scrolled to it. */
export const seekingOf = (place: Locator): Promise<{ marks: number; scrolls: number }> =>
  place.evaluate((each) => {
    const { marked, scrolledTo } = globalThis as unknown as Seeking;
    const count = (list: readonly Element[]): number => list.filter((other) => other === each).length;
    return { marks: count(marked), scrolls: count(scrolledTo) };
  });

export async function keepShot(page: Page, name: string): Promise<void> {
  if (ARTEFACTS === undefined) return;
  mkdirSync(ARTEFACTS, { recursive: true });
  await page.screenshot({ path: join(ARTEFACTS, `${name}.png`) });
}

/** Asks in the open chat, and waits for the end of the answer. */
export async function ask(page: Page, text: string): Promise<void> {
  const before = await page.locator(".message.assistant .about").count();
  await send(page, text);
  await page.locator(".message.assistant .about").nth(before).waitFor();
}

/** Asks, once the page knows the model. */
export async function send(page: Page, text: string): Promise<void> {
  await page.locator("#composer").fill(text);
  await page.locator("button[type=submit].send:enabled").waitFor();
  await page.locator("#composer").press("Enter"); // a closing dialog takes the focus with it
}

/** Chooses where the chat's model runs; the menu of models shows it on request. */
export async function choosePlace(page: Page, place: "on the server" | "in this page"): Promise<void> {
  await page.getByRole("button", { name: /^Model: / }).click();
  await page.locator(".places summary").click();
  await page.getByRole("radio", { name: place, exact: true }).check();
  await page.keyboard.press("Escape");
}

/** Chooses a model in the composer's menu. */
export async function chooseModel(page: Page, name: string): Promise<void> {
  await page.getByRole("button", { name: /^Model: / }).click();
  await page
    .getByRole("dialog", { name: "Choose a model" })
    .getByRole("button", { name: new RegExp(`^${name}`) })
    .click();
}
