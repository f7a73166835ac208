/** Tool servers on the page: switches, questions before calls, results, and approvals of waiting turns. */
import { expect, test } from "bun:test";
import { existsSync, readFileSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import type { Page } from "playwright-core";
import { eventually } from "../e2e/hearth.ts";
import { violationsOf } from "./axe.ts";
import { GATEWAY_TOKEN, keepShot, openPage, send, type World } from "./page.ts";

interface Said {
  readonly role: string;
  readonly content: string;
}

/**
 * The model makes the call that is in the user's message, as `SERVER__TOOL ARGUMENTS`, and then repeats its result.
 * Returns the messages of each request.
 */
async function scriptModel(page: Page): Promise<(readonly Said[])[]> {
  const asked: (readonly Said[])[] = [];
  await page.route("**/api/chat", async (route) => {
    const { messages } = route.request().postDataJSON() as { messages: Said[] };
    asked.push(messages);
    const { role, content } = messages.at(-1)!;
    const [, name, args = "{}"] = /^(\S+) (.*)$/.exec(content) ?? [];
    const said =
      role === "user"
        ? { tool_calls: [{ id: "call_1", function: { name, arguments: JSON.parse(args) } }] }
        : { content: `Heard ${content}` };
    const lines = [
      { message: said, done: false },
      { message: {}, done: true, done_reason: "stop" },
    ];
    await route.fulfill({ body: lines.map((line) => `${JSON.stringify(line)}\n`).join("") });
  });
  return asked;
}

async function switchOn(page: Page, ...servers: string[]): Promise<void> {
  await page.keyboard.press("Control+,");
  for (const server of servers) await page.getByRole("switch", { name: server }).check();
  await page.keyboard.press("Escape");
  await page.locator("dialog").waitFor({ state: "detached" });
}

const answers = (page: Page, text: string) => page.locator(".message.assistant .markdown", { hasText: text });

function decisions(world: () => World): void {
  test("a tool call waits for the user's choice (once, always, refused, never); its result is shown as text and sent to the model", async () => {
    const { page, pageErrors } = await openPage(world().browser, `${world().hearth.url}/ui`);
    const asked = await scriptModel(page);
    await switchOn(page, "everything");
    const question = page.getByRole("group", { name: "The model wants to call everything/echo." });
    const echo = (text: string): Promise<void> => send(page, `everything__echo {"message":"${text}"}`);
    const decide = async (decision: string): Promise<void> =>
      question.getByRole("button", { name: decision, exact: true }).click();

    await echo("<img src=x onerror=alert(1)>\\u202e");
    await question.waitFor();
    expect(await page.locator(".call pre").innerText()).toContain(String.raw`onerror=alert(1)>\u{202e}`);
    expect(await violationsOf(page)).toEqual([]);
    await keepShot(page, "call-question-1440");
    await decide("Allow once");
    await answers(page, "Heard").waitFor();
    await page.locator(".call summary").click();
    expect(await page.locator(".call-result").textContent()).toStartWith("Echo: <img src=x onerror=alert(1)>");
    expect(asked[1]?.at(-1)?.content).toContain("EXTERNAL_UNTRUSTED_CONTENT");

    await echo("b".repeat(5000));
    await decide("Always in this chat");
    await answers(page, "Heard").nth(1).waitFor();
    await page.locator(".call summary").nth(1).click();
    await page.getByText("Only the beginning is shown.").waitFor();
    expect((await page.locator(".call-result").nth(1).textContent())?.length).toBe(4000);
    await echo("three");
    await answers(page, "Heard").nth(2).waitFor(); // without a question
    await page.keyboard.press("Control+,");
    await page.getByText("Called without asking: echo.").waitFor();
    expect(await violationsOf(page)).toEqual([]);
    await keepShot(page, "tool-servers-1440");
    await page.getByRole("button", { name: "Ask again" }).click();
    await page.keyboard.press("Escape");

    await echo("four");
    await decide("Refuse");
    await answers(page, "Heard error: the person refused this call").waitFor();
    await echo("five");
    await decide("Never in this chat");
    await answers(page, "Heard error: the person refused this call").nth(1).waitFor();
    await echo("six");
    await answers(page, "Heard error: the person refused this call").nth(2).waitFor();
    expect(pageErrors).toEqual([]);
  }, 60_000);
}

function files(world: () => World): void {
  test("harmless tools are called at once, a question survives a reload, a running call can be stopped", async () => {
    const { page, pageErrors } = await openPage(world().browser, `${world().hearth.url}/ui`);
    await scriptModel(page);
    const folder = join(world().hearth.home, "files");
    const [read, written] = [join(folder, "read.txt"), join(folder, "written.txt")];
    writeFileSync(read, "It is written.");
    await switchOn(page, "files", "everything");
    await send(page, `files__read_text_file ${JSON.stringify({ path: read })}`);
    await answers(page, "It is written.").waitFor();

    await send(page, `files__write_file ${JSON.stringify({ path: written, content: "new" })}`);
    const question = page.getByRole("group", { name: "The model wants to call files/write_file." });
    await question.waitFor();
    await page.reload();
    expect(existsSync(written)).toBe(false);
    await question.getByRole("button", { name: "Allow once" }).click();
    await answers(page, "Successfully wrote").waitFor();
    expect(readFileSync(written, "utf8")).toBe("new");

    await send(page, 'everything__trigger-long-running-operation {"duration":60,"steps":2}');
    await page.getByRole("button", { name: "Allow once" }).click();
    await page.getByRole("button", { name: "Stop this call" }).waitFor();
    await page.reload(); // in the middle of the call
    await page.getByText("An earlier attempt was interrupted. It may have had its effect.").waitFor();
    await page.getByRole("button", { name: "Allow once" }).click();
    await page.getByRole("button", { name: "Stop this call" }).click();
    await answers(page, "the person stopped this call").waitFor();

    await page.route("**/api/mcp", (route) => route.fulfill({ json: { servers: [] } })); // the configuration changed
    await page.keyboard.press("Control+,");
    await page.getByText("The tools of files are missing: it is not configured.").waitFor();
    await page.getByRole("switch", { name: "files" }).click();
    await page.getByRole("switch", { name: "files" }).waitFor({ state: "detached" });
    expect(pageErrors).toEqual([]);
  }, 60_000);
}

async function firstLine(output: ReadableStream<Uint8Array>): Promise<string> {
  for await (const chunk of output) return new TextDecoder().decode(chunk).trim();
  throw new Error("it printed no address");
}

function waitingTurns(world: () => World): void {
  test("calls of waiting turns are shown in the gateway's view, and allowed or refused there", async () => {
    const effects = join(world().hearth.home, "effects");
    const program = join(import.meta.dir, "../gateway/operate/waiting-turns.ts");
    const gateway = Bun.spawn([process.execPath, program, effects], { stdout: "pipe" });
    try {
      const url = await firstLine(gateway.stdout);
      const { page, pageErrors } = await openPage(world().browser, `${world().hearth.url}/ui#/gateway`);
      await page.route("**/hooks-admin/**", async (route) => {
        const { pathname, search } = new URL(route.request().url());
        await route.fulfill({ response: await route.fetch({ url: url + pathname + search }) });
      });
      await page.getByRole("textbox", { name: "Gateway token" }).fill(GATEWAY_TOKEN);
      await page.keyboard.press("Enter");
      await page.getByRole("tab", { name: "Approvals" }).click();
      const calls = page.locator(".approval");
      await calls.nth(1).waitFor();
      expect(await calls.first().locator("pre").innerText()).toContain('"n": "<i>1</i>"');
      expect(await violationsOf(page)).toEqual([]);
      await keepShot(page, "approvals-1440");
      await calls.first().getByRole("button", { name: "Allow once" }).click();
      await page.getByText("Allowed the call of fx/once.").waitFor();
      await calls.nth(1).waitFor({ state: "detached" });
      await calls.first().getByRole("button", { name: "Refuse" }).click();
      await page.getByText("No call is waiting for an approval.").waitFor();
      expect(await eventually(() => existsSync(effects), 60_000)).toBe(true);
      expect(readFileSync(effects, "utf8")).toBe("once <i>1</i> \n");
      expect(pageErrors).toEqual([]);
    } finally {
      gateway.kill();
      await gateway.exited;
    }
  }, 60_000);
}

export const toolCases = [decisions, files, waitingTurns] as const;
