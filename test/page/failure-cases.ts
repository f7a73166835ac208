/** Bad input and failures: hostile texts, a server that goes away, keys, two tabs, long chats, no room. */
import { expect, test } from "bun:test";
import { mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import type { Page } from "playwright-core";
import { eventually, startHearth } from "../e2e/hearth.ts";
import { importChat } from "./import-chat.ts";
import { HOSTILE } from "./hostile-texts.ts";
import { ask, choosePlace, keepShot, openPage, send, watched, type World } from "./page.ts";

/** Asks for a long answer, and waits until some of it has arrived. */
async function beginLong(page: Page): Promise<void> {
  await send(page, "Go on for ever.");
  await page.getByRole("button", { name: "Stop" }).waitFor();
  await page.locator(".message[aria-busy=true] .markdown").waitFor();
}

function hostileTexts(world: () => World): void {
  test(`${HOSTILE.length} hostile texts are shown as text in messages, thoughts, calls, errors, names and files`, async () => {
    const { page, pageErrors } = await openPage(world().browser, `${world().hearth.url}/ui`);
    await page.evaluate(() => addEventListener("beforeunload", () => console.error("Content-Security-Policy: left")));
    await importChat(
      page,
      HOSTILE[1]!,
      HOSTILE.flatMap((text) => [text, text]),
      (text) => ({
        thinking: text,
        model: text,
        calls: [{ name: text, arguments: { [text]: text } }],
        files: [{ name: text, text }],
        state: "failed",
        error: text,
      }),
    );
    for (let i = 0; i < HOSTILE.length * 2; i += 4) await page.locator(".message").nth(i).scrollIntoViewIfNeeded();
    await page.locator(".message").last().scrollIntoViewIfNeeded();
    await expectText(page);
    const text = await page.locator(".log").evaluate((log) => log.textContent);
    for (const [i, each] of HOSTILE.slice(0, 15).entries()) expect([i, text.includes(each)]).toEqual([i, true]);
    await keepShot(page, "hostile-1440");
    expect(pageErrors).toEqual([]);
  }, 60_000);

  test("hostile texts are shown as text while answers, thoughts and calls stream", async () => {
    const { page, pageErrors } = await openPage(world().browser, `${world().hearth.url}/ui`);
    const pieces = HOSTILE.join("\n\n").match(/[^]{1,7}/g) ?? [];
    const lines = pieces.flatMap((content) => [
      { message: { content, thinking: content }, done: false },
      { message: { tool_calls: [{ function: { name: content, arguments: { content } } }] }, done: false },
    ]);
    const said = [...lines, { message: {}, done: true, done_reason: "stop" }].map((line) => JSON.stringify(line));
    await page.route("**/api/chat", (route) => route.fulfill({ body: `${said.join("\n")}\n` }));
    await ask(page, "Go on.");
    await expectText(page);
    expect(await page.locator(".message.assistant .markdown").innerText()).toContain("<iframe srcdoc=");
    expect(pageErrors).toEqual([]);
  }, 60_000);
}

/** No text of a message has become an element, a handler or a URL. */
async function expectText(page: Page): Promise<void> {
  const found = await page.evaluate(() => {
    const inside = [...document.querySelectorAll(".message *, .sidebar .chat-list li *")];
    const ours = "svg.icon, form.results"; // the page's own: icons, and fields for a tool's result
    const names = inside.filter((each) => !each.closest(ours)).map(({ localName }) => localName);
    const links = [...document.querySelectorAll<HTMLAnchorElement>(".message a")].map(({ protocol }) => protocol);
    const on = inside.filter((each) => each.getAttributeNames().some((name) => name.startsWith("on"))).length;
    return { names: [...new Set(names)], links: [...new Set(links)], on, broken: "broken" in globalThis };
  });
  const strange = "script img svg iframe style form base meta math object embed input link".split(" ");
  expect(found.names.filter((name) => strange.includes(name))).toEqual([]);
  expect([found.on, found.broken]).toEqual([0, false]);
  expect(found.links.filter((protocol) => !/^(https?|mailto):$/.test(protocol))).toEqual([]);
}

/** From here on, records how many messages enter the page at once. */
const watchArrivals = (page: Page): Promise<void> =>
  page.evaluate(() => {
    const arrivals: number[] = [];
    const messagesIn = (node: Node): number =>
      node instanceof Element ? node.querySelectorAll(".message").length + Number(node.matches(".message")) : 0;
    new MutationObserver((records) => {
      const added = records.flatMap(({ addedNodes }) => [...addedNodes]);
      arrivals.push(added.reduce((sum, node) => sum + messagesIn(node), 0));
    }).observe(document.body, { childList: true, subtree: true });
    Object.assign(globalThis, { arrivals });
  });

/** From here on, records changes inside the last message, and elsewhere in the log. */
const watchChanges = (page: Page): Promise<void> =>
  page.evaluate(() => {
    const changes = { inside: 0, elsewhere: 0 };
    new MutationObserver((records) => {
      const last = document.querySelector(".message:last-child")!;
      for (const { target } of records) changes[last.contains(target) ? "inside" : "elsewhere"]++;
    }).observe(document.querySelector(".log")!, {
      childList: true,
      subtree: true,
      attributes: true,
      characterData: true,
    });
    Object.assign(globalThis, { changes });
  });

function longChat(world: () => World): void {
  test("a chat of 1,000 messages opens in parts, draws few, and changes only the new answer, which Escape stops", async () => {
    const { page, pageErrors } = await openPage(world().browser, `${world().hearth.url}/ui`);
    const long = (i: number): string => `# Part ${i}\n\n${"Some *words* of `code`. ".repeat(12)}\n\n- one\n- two\n`;
    await watchArrivals(page);
    await importChat(
      page,
      "Long",
      Array.from({ length: 1000 }, (_, i) => long(i)),
    );
    await page.waitForFunction(() => document.querySelectorAll(".message").length === 1000);
    const arrivals = await page.evaluate(() => (globalThis as unknown as { arrivals: number[] }).arrivals);
    expect(Math.max(...arrivals)).toBeLessThanOrEqual(80);
    const drawn = await page.locator(".message .markdown").count();
    expect(drawn).toBeLessThan(60);
    await beginLong(page);
    await watchChanges(page);
    type Watched = { readonly changes: { inside: number; elsewhere: number } };
    await page.waitForFunction(() => {
      const { changes } = globalThis as unknown as Watched;
      const { length } = document.querySelector(".message:last-child .markdown")?.textContent ?? "";
      return length > 300 && changes.inside > 0; // it may have been as long before the recording
    });
    const { elsewhere } = await page.evaluate(() => (globalThis as unknown as Watched).changes);
    expect(elsewhere).toBe(0);
    await page.keyboard.press("Escape");
    await page.getByText("Stopped.").waitFor();
    expect(await page.locator(".message .markdown").count()).toBeLessThan(drawn + 20);
    expect(pageErrors).toEqual([]);
  }, 60_000);
}

function twoTabs(world: () => World): void {
  test("a second tab follows an answer and says why it sends no message; it can continue a closed tab's answer", async () => {
    const { page, context, pageErrors } = await openPage(world().browser, `${world().hearth.url}/ui`);
    await importChat(page, "Two tabs", ["Hello.", "Hello, too."]);
    await beginLong(page);
    const other = await watched(context, pageErrors);
    await other.goto(page.url());
    await other.getByText("Another tab is writing this answer.").waitFor();
    await other.locator("#composer").fill("And me?");
    await other.keyboard.press("Enter");
    await other.getByText("Another tab is answering this chat.").waitFor();
    expect(await other.locator("#composer").inputValue()).toBe("And me?"); // it was not sent
    await other.locator(".message.assistant").last().locator(".markdown > *").first().waitFor(); // the saved part
    await page.close();
    await other.getByText("The page was closed before this answer was complete.").waitFor(); // it notices by itself
    await other.reload();
    await other.getByText("The page was closed before this answer was complete.").waitFor();
    await keepShot(other, "closed-1440");
    await other.getByRole("button", { name: "Continue", exact: true }).click();
    await other.getByRole("button", { name: "Stop" }).click();
    await other.getByText("Stopped.").waitFor();
    expect(pageErrors).toEqual([]);
  }, 60_000);
}

/** Blocks saves of the page, like a slow disk. Returns a function that releases them. */
async function holdDatabase(page: Page): Promise<() => Promise<void>> {
  type Holding = { isHeld: boolean };
  await page.evaluate(async () => {
    const holding = Object.assign(globalThis, { isHeld: true });
    const db = await new Promise<IDBDatabase>((resolve) => {
      const request = indexedDB.open("hearth");
      request.onsuccess = () => resolve(request.result);
    });
    const store = db.transaction(["chats", "messages"], "readwrite").objectStore("chats");
    const read = (): void => {
      // without requests, the transaction would end
      store.get("").onsuccess = () => (holding.isHeld ? read() : db.close());
    };
    read();
  });
  return () => page.evaluate(() => void ((globalThis as unknown as Holding).isHeld = false));
}

function slowDatabase(world: () => World): void {
  test("an answer ends when it is saved, however slowly, and can be answered again at once", async () => {
    const { page, pageErrors } = await openPage(world().browser, `${world().hearth.url}/ui`);
    await importChat(page, "Slow disk", ["Hello.", "Hello, too."]);
    await beginLong(page);
    const goOn = await holdDatabase(page);
    await page.keyboard.press("Escape");
    await Bun.sleep(500);
    expect(await page.locator(".message[aria-busy=true]").count()).toBe(1);
    expect(await page.locator(".message[aria-busy=true] .foot").count()).toBe(0);
    await goOn();
    await page.getByText("Stopped.").waitFor();
    await page.getByRole("button", { name: "Answer again" }).last().click();
    await page.getByRole("button", { name: "Stop" }).click();
    await page.locator(".branches", { hasText: "2 / 2" }).waitFor();
    expect(pageErrors).toEqual([]);
  }, 60_000);
}

function deletedElsewhere(world: () => World): void {
  test("an answer stops if another tab deletes its chat, and the chat stays deleted", async () => {
    const { page, context, pageErrors } = await openPage(world().browser, `${world().hearth.url}/ui`);
    await importChat(page, "Soon gone", ["Hello.", "Hello, too."]);
    await beginLong(page);
    const other = await watched(context, pageErrors);
    await other.goto(page.url());
    await other.getByText("Another tab is writing this answer.").waitFor();
    const log = await page.locator(".log").elementHandle();
    const ended = page.waitForEvent("requestfailed", (request) => request.url().endsWith("/api/chat"));
    await other.getByRole("button", { name: "More about Soon gone" }).click();
    await other.getByRole("menuitem", { name: "Delete" }).click();
    await page.getByRole("link", { name: "Soon gone" }).waitFor({ state: "detached" });
    await ended;
    await log!.evaluate((gone) => gone.dispatchEvent(new Event("scroll"))); // the browser's pending events
    await page.reload();
    await page.locator("#composer").waitFor();
    expect(await page.getByRole("link", { name: "Soon gone" }).count()).toBe(0);
    expect(pageErrors).toEqual([]);
  }, 60_000);
}

function goneServer(world: () => World): void {
  test("a server with keys asks for one; after the server restarts during an answer, the answer can be continued", async () => {
    const home = mkdtempSync(join(tmpdir(), "hearth-ui-gone-"));
    const env = { HEARTH_API_KEYS: "a-key-of-somebody" };
    let hearth = await startHearth({ home, env });
    try {
      const { page, pageErrors } = await openPage(world().browser, `${hearth.url}/ui`);
      const key = page.getByLabel("API key", { exact: true });
      await page.locator("input:focus").waitFor(); // it takes the keys by itself
      await page.keyboard.type("another");
      await page.keyboard.press("Enter");
      await page.getByText("The key is wrong.").waitFor();
      await keepShot(page, "key-1440");
      await page.keyboard.press("Escape"); // and no other request asks
      const enter = page.getByRole("button", { name: "Enter the key" });
      await enter.waitFor();
      const refused = page.waitForResponse("**/api/ps");
      await page.getByRole("link", { name: "Models" }).click();
      expect((await refused).status()).toBe(401);
      await page.getByRole("button", { name: "New chat" }).click();
      expect(await page.locator("dialog").count()).toBe(0);
      await enter.click();
      await key.waitFor();
      const other = await openPage(world().browser, `${hearth.url}/ui`);
      await other.page.getByLabel("API key", { exact: true }).fill("sk-an…er"); // as a partly hidden key is shown
      await other.page.keyboard.press("Enter");
      await other.page.getByText("The key is wrong.").waitFor();
      await key.fill("a-key-of-somebody");
      await page.keyboard.press("Enter");
      await page.locator("dialog").waitFor({ state: "detached" });
      await importChat(page, "Gone", ["Hello.", "Hello, too."]);
      await beginLong(page);
      await hearth.stop();
      await page.getByText("The server cannot be reached.").waitFor();
      await page
        .getByRole("article")
        .getByText(/The answer so far is saved/)
        .waitFor();
      await keepShot(page, "gone-1440");
      hearth = await startHearth({ home, env: { ...env, HEARTH_HOST: new URL(hearth.url).host } });
      await page.getByText("The server cannot be reached.").waitFor({ state: "detached" });
      const answer = page.locator(".message.assistant .markdown").last();
      const before = (await answer.innerText()).length;
      await page.getByRole("button", { name: "Continue", exact: true }).click();
      expect(await eventually(async () => (await answer.innerText()).length > before)).toBe(true);
      expect(pageErrors).toEqual([]);
    } finally {
      await hearth.stop();
      rmSync(home, { recursive: true, force: true });
    }
  }, 120_000);
}

function noRoom(world: () => World): void {
  test("a page without storage or WebGPU says so, and its model answers", async () => {
    const { page, context, pageErrors } = await openPage(world().browser, `${world().hearth.url}/ui`);
    await page.addInitScript(() => {
      Object.defineProperty(Navigator.prototype, "gpu", { value: undefined });
      delete (Navigator.prototype as { gpu?: unknown }).gpu;
    });
    const session = await context.newCDPSession(page);
    await session.send("Storage.overrideQuotaForOrigin", { origin: world().hearth.url, quotaSize: 3_000_000 });
    await page.evaluate(() => localStorage.setItem("hearth-backend", "wasm"));
    await page.reload();
    await choosePlace(page, "in this page");
    const answered = ask(page, "Who are you?");
    await page.getByText(/The page cannot keep the model \(this page's storage is full/).waitFor();
    await page.getByText("This browser has no WebGPU").waitFor();
    await answered;
    expect((await page.locator(".message.assistant .body").innerText()).length).toBeGreaterThan(3);
    await keepShot(page, "no-room-1440");
    expect(pageErrors).toEqual([]);
  }, 60_000);
}

export const failureCases = [
  hostileTexts,
  longChat,
  twoTabs,
  slowDatabase,
  deletedElsewhere,
  goneServer,
  noRoom,
] as const;
