/** Titles by the model: when it is asked, with which messages, and titles by a person, which stay. */
import { expect, test } from "bun:test";
import type { Page, Request } from "playwright-core";
import { eventually } from "../e2e/hearth.ts";
import { ask, openPage, type World } from "./page.ts";

interface TitleQuestion {
  readonly messages: readonly { readonly role: string; readonly content: string }[];
  readonly options: { readonly num_predict?: number };
  readonly think?: boolean;
}

const isForTitle = (request: Request): boolean =>
  request.url().endsWith("/api/chat") &&
  (request.postDataJSON() as TitleQuestion).messages.at(-1)!.content.startsWith("Write a title");

/** The embedded model, which claims to be large; `answer` gives the title, or undefined for no answer at all. */
async function withTitles(
  page: Page,
  answer: (n: number) => string | undefined | Promise<string>,
): Promise<TitleQuestion[]> {
  const asked: TitleQuestion[] = [];
  await page.route("**/api/tags", async (route) => {
    const { models } = (await (await route.fetch()).json()) as { models: { details: object }[] };
    const large = models.map((each) => ({ ...each, details: { ...each.details, parameter_size: "8.0B" } }));
    await route.fulfill({ json: { models: large } });
  });
  await page.route("**/api/chat", async (route) => {
    if (!isForTitle(route.request())) return route.continue();
    const content = await answer(asked.push(route.request().postDataJSON() as TitleQuestion));
    if (content === undefined) return undefined; // it hangs
    const line = { message: { role: "assistant", content }, done: true, done_reason: "stop" };
    return route.fulfill({ body: `${JSON.stringify(line)}\n`, contentType: "application/x-ndjson" });
  });
  await page.reload();
  return asked;
}

const heading = (page: Page, title: string) => page.getByRole("heading", { level: 1, name: title, exact: true });

function written(world: () => World): void {
  test("a title is written once after the answer, and again for a changed first message, but never over a user's", async () => {
    const { page, pageErrors } = await openPage(world().browser, `${world().hearth.url}/ui`);
    const isSeen = Promise.withResolvers<void>();
    const asked = await withTitles(page, async (n) => {
      if (n === 2) await isSeen.promise;
      return `"Title ${n}."`;
    });
    await ask(page, "fox");
    await heading(page, "Title 1").waitFor();
    expect(asked[0]!.messages.map(({ role }) => role)).toEqual(["user", "assistant", "user"]);
    expect([asked[0]!.options.num_predict, asked[0]!.think]).toEqual([24, false]);
    await ask(page, "Go on."); // a title is written once
    await page.waitForTimeout(1500);
    expect(asked.length).toBe(1);
    await page.locator(".message.user").first().getByRole("button", { name: "Edit" }).click();
    await page.getByRole("textbox", { name: "Your message" }).fill("dog");
    await page.keyboard.press("Enter");
    await heading(page, "dog").waitFor(); // until the model has answered
    isSeen.resolve();
    await heading(page, "Title 2").waitFor();
    await page.getByRole("button", { name: "More about Title 2" }).click();
    await page.getByRole("menuitem", { name: "Rename" }).click();
    await page.getByRole("textbox", { name: "Name of the chat" }).fill("Mine");
    await page.keyboard.press("Enter");
    await page.locator(".message.user").first().getByRole("button", { name: "Edit" }).click();
    await page.getByRole("textbox", { name: "Your message" }).fill("cat");
    await page.keyboard.press("Enter");
    await page.locator(".message.user .branches", { hasText: "3 / 3" }).waitFor();
    await page.locator(".message.assistant .about").waitFor();
    await page.waitForTimeout(1500);
    await heading(page, "Mine").waitFor();
    expect(asked.length).toBe(2);
    expect(pageErrors).toEqual([]);
  }, 90_000);
}

function givenUp(world: () => World): void {
  test("a new message ends the request for a title; small models get none, and no model if titles are off", async () => {
    const { page, pageErrors } = await openPage(world().browser, `${world().hearth.url}/ui`);
    const titles: Request[] = [];
    page.on("request", (request) => void (isForTitle(request) && titles.push(request)));
    await ask(page, "A small model");
    await page.waitForTimeout(1500);
    expect(titles.length).toBe(0);

    await withTitles(page, () => undefined);
    await page.getByRole("button", { name: "New chat" }).click();
    await page.locator(".message").first().waitFor({ state: "detached" }); // the old chat's answers must not count
    await ask(page, "A large model");
    expect(await eventually(async () => titles.length === 1)).toBe(true);
    await ask(page, "And more?");
    expect(await eventually(() => titles[0]!.failure() !== null)).toBe(true);
    await heading(page, "A large model").waitFor();
    expect(await eventually(async () => titles.length === 2)).toBe(true); // it is asked again when that is over

    await page.getByRole("link", { name: "System" }).click();
    await page.getByRole("checkbox", { name: /^Let the model write titles/ }).uncheck();
    await page.getByRole("button", { name: "New chat" }).click();
    await ask(page, "No title, please");
    await page.waitForTimeout(1500);
    expect(titles.length).toBe(2);
    expect(pageErrors).toEqual([]);
  }, 90_000);
}

export const titleCases = [written, givenUp] as const;
