/** A chat of known messages, brought into a page by a file. */
import type { Page } from "playwright-core";
import { fileOf } from "../../src/page/app/chat/transfer.ts";
import type { Chat, Message } from "../../src/page/app/chat/tree.ts";

/** Brings a chat of these messages in, by a file, and opens it. Its new answers do not end by themselves. */
export async function importChat(
  page: Page,
  title: string,
  texts: readonly string[],
  more: (content: string) => Partial<Message> = () => ({}),
  model = "hearth:latest",
): Promise<void> {
  const options = { temperature: 100, top_k: 0, top_p: 1, num_predict: -1 };
  const about = { model, place: "server", system: "", tools: "", options } as const;
  await page.context().route("**/api/chat", (route) => {
    const body = route.request().postDataJSON() as { options: object };
    return route.continue({ postData: JSON.stringify({ ...body, options: { ...body.options, ignore_eos: true } }) });
  });
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
