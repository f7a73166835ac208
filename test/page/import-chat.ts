/** A chat of known messages, brought into a page by a file. */
import type { Page } from "playwright-core";
import { fileOf } from "../../src/page/app/chat/transfer.ts";
import type { Chat, Message } from "../../src/page/app/chat/tree.ts";

/** With equally likely tokens and this seed, the limit ends the answer, after seconds of the server's time. */
const LONG = 12_000;
const SEED = 10;

/** Brings a chat of these messages in, by a file, and opens it. */
export async function importChat(
  page: Page,
  title: string,
  texts: readonly string[],
  more: (content: string) => Partial<Message> = () => ({}),
  model = "hearth:latest",
): Promise<void> {
  const options = { temperature: 100, top_k: 0, top_p: 1, num_predict: LONG, seed: SEED };
  const about = { model, place: "server", system: "", tools: "", options } as const;
  const chat: Chat = { id: "x", title, at: 1, updated: 1, ...about, leaf: `m${texts.length - 1}` };
  const messages = texts.map((content, i): Message => {
    const parent = i === 0 ? null : `m${i - 1}`;
    const role = i % 2 === 0 ? "user" : "assistant";
    return { id: `m${i}`, chat: "x", parent, at: i, content, role, ...more(content) };
  });
  const buffer = Buffer.from(JSON.stringify(fileOf([chat], messages)));
  await page.getByLabel("Files with chats").setInputFiles({ name: "chats.json", mimeType: "application/json", buffer });
  await page.getByRole("link", { name: title }).click();
  await page.locator(".message").last().waitFor();
}
