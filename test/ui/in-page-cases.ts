/** A model that runs in the page: the server's answer token for token, and nothing over the network the second time. */
import { expect, test } from "bun:test";
import { ask, keepShot, openPage, type World } from "./page.ts";

const COUNT = 16;
const QUESTION = "Tell me a story.";

function inPage(world: () => World): void {
  test("answers as the server does at temperature 0; its file comes once", async () => {
    const said = await world().hearth.post("/api/chat", {
      model: "hearth",
      stream: false,
      options: { temperature: 0, num_predict: COUNT },
      messages: [{ role: "user", content: QUESTION }],
    });
    const expected = (await said.json()) as { message: { content: string }; eval_count: number };
    expect(expected.eval_count).toBe(COUNT);

    const { page, context, troubles } = await openPage(world().browser, `${world().hearth.url}/ui`);
    const fetched: string[] = [];
    context.on("request", (request) => fetched.push(new URL(request.url()).pathname));
    await page.evaluate(() => localStorage.setItem("hearth-backend", "wasm")); // before the page reads it anew
    await page.reload();
    const begin = async (): Promise<void> => {
      await page.getByRole("combobox", { name: "Where it runs" }).selectOption("page");
      await page.getByRole("button", { name: "Settings of this chat" }).click();
      await page.getByRole("spinbutton", { name: "Temperature" }).fill("0");
      await page.getByRole("spinbutton", { name: "Longest answer, tokens" }).fill(`${COUNT}`);
      await page.keyboard.press("Escape");
      await page.locator("dialog").waitFor({ state: "detached" });
      await ask(page, QUESTION);
    };
    await begin();
    expect(fetched.some((path) => path.startsWith("/api/blobs/"))).toBe(true);
    const answer = page.locator(".message.assistant .markdown");
    expect(await answer.innerText()).toBe(expected.message.content.trim());
    expect(await page.locator(".about").innerText()).toMatch(new RegExp(`in this page.* ${COUNT} tokens`));
    await page.getByText("The answer reached its limit.").waitFor();
    await keepShot(page, "in-page-1280");

    fetched.length = 0; // a second visit
    await page.goto(`${world().hearth.url}/ui#/models`);
    await page.reload();
    await page.getByRole("button", { name: "Look at what is kept" }).click();
    await page.getByText("A model's weights").waitFor();
    await page.getByRole("button", { name: "New chat" }).click();
    await begin();
    expect(await answer.innerText()).toBe(expected.message.content.trim());
    expect(fetched.filter((path) => path.startsWith("/api/blobs/"))).toEqual([]);
    expect(troubles).toEqual([]);
  }, 120_000);
}

export const inPageCases = [inPage] as const;
