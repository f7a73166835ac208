/**
 * The page with a chat of 1,000 messages: the longest tasks of its main thread while the chat opens and while an answer
 * grows, in processor time and by the clock. The browser driver's own requests count, too.
 *
 *   bun bench/page.ts [--messages 1000]
 */
import { mkdtempSync, readFileSync, rmSync } from "node:fs";
import { loadavg, tmpdir } from "node:os";
import { join } from "node:path";
import { parseArgs } from "node:util";
import { fileOf } from "../src/page/app/chat/transfer.ts";
import type { Chat, Message } from "../src/page/app/chat/tree.ts";
import { openPage, startWorld } from "../test/page/page.ts";

const { values } = parseArgs({ options: { messages: { type: "string", default: "1000" } } });
const count = Number(values.messages);
const home = mkdtempSync(join(tmpdir(), "hearth-bench-page-"));
const trace = join(home, "trace.json");

const options = { temperature: 100, top_k: 0, top_p: 1, num_predict: 4000, seed: 6 };
const about = { model: "hearth:latest", place: "server", system: "", tools: "", options } as const;
const chat: Chat = { id: "x", title: "Long", at: 1, updated: 1, ...about, leaf: `m${count - 1}` };
const messages = Array.from({ length: count }, (_, i): Message => {
  const content = `# Part ${i}\n\n${"Some *words* of `code`. ".repeat(12)}\n\n- one\n- two\n`;
  const parent = i === 0 ? null : `m${i - 1}`;
  return { id: `m${i}`, chat: "x", parent, at: i, content, role: i % 2 === 0 ? "user" : "assistant" };
});

interface TraceEvent {
  readonly name: string;
  readonly cat: string;
  readonly ph: string;
  readonly pid: number;
  readonly tid: number;
  readonly ts: number;
  readonly dur: number;
  readonly tdur?: number;
}

async function drive(): Promise<void> {
  const world = await startWorld(home);
  try {
    const { page } = await openPage(world.browser, `${world.hearth.url}/ui`);
    const buffer = Buffer.from(JSON.stringify(fileOf([chat], messages)));
    const file = { name: "chats.json", mimeType: "application/json", buffer };
    await page.getByLabel("Files with chats").setInputFiles(file);
    const link = page.getByRole("link", { name: "Long" });
    await link.waitFor();
    const mark = (name: string) => page.evaluate((each) => void performance.mark(each), name);
    const categories = ["devtools.timeline", "toplevel", "blink.user_timing"];
    await world.browser.startTracing(page, { path: trace, categories });
    await mark("opening");
    await link.click();
    await page.waitForFunction((all) => document.querySelectorAll(".message").length === all, count);
    await mark("asking");
    await page.locator("#composer").fill("Go on for ever.");
    await page.keyboard.press("Enter");
    await page.waitForFunction(() => document.querySelector(".message[aria-busy=true] .markdown") !== null);
    await mark("answering");
    await page.waitForFunction(() => document.querySelector(".message[aria-busy=true]")!.textContent.length > 800);
    await mark("over");
    await world.browser.stopTracing();
  } finally {
    await world.browser.close();
    await world.hearth.stop();
  }
}

await drive();
const { traceEvents } = JSON.parse(readFileSync(trace, "utf8")) as { traceEvents: TraceEvent[] }; // Chromium's format
rmSync(home, { recursive: true, force: true });
const phases = ["opening", "asking", "answering", "over"];
const marks = phases.map((phase) =>
  traceEvents.find(({ name, cat }) => name === phase && cat.includes("user_timing"))!,
);
const { pid, tid } = marks[0]!;
const main = traceEvents.filter((each) => each.pid === pid && each.tid === tid && each.ph === "X");
for (const [i, phase] of phases.slice(0, -1).entries()) {
  const [from, to] = [marks[i]!.ts, marks[i + 1]!.ts];
  const tasks = main.filter(({ name, ts }) => name.endsWith("RunTask") && ts >= from && ts < to);
  const own = tasks.toSorted((a, b) => (b.tdur ?? 0) - (a.tdur ?? 0));
  const text = own.slice(0, 3).map(({ tdur = 0, dur }) => `${(tdur / 1000).toFixed(1)} (${(dur / 1000).toFixed(1)})`);
  console.log(`${phase}: longest tasks, ms of processor (and clock): ${text.join(", ")}`);
}
console.log(`load average ${loadavg()[0]!.toFixed(1)}`);
process.exit(0);
