/** Chats with WebLLM, over a scripted Worker. */
import { expect, test } from "bun:test";
import type { FromWebLlm, ToWebLlm } from "../../src/page/engine/webllm/messages.ts";
import { makeApi } from "../../src/page/app/base/api.ts";
import type { AnswerEvent } from "../../src/page/app/chat/answers.ts";
import { makeQueue } from "../../src/page/app/engine/queue.ts";
import { answer } from "../../src/page/app/engine/webllm-chat.ts";
import { en } from "../../src/page/app/words/en.ts";

/** A Worker with a model in memory, which answers one chat after the other, like WebLLM. */
function loadedWorker() {
  const asked: ToWebLlm[] = [];
  const worker = {
    key: JSON.stringify(["digest", undefined]),
    model: { name: "m", contextLength: undefined },
    send: (message: ToWebLlm): void => void asked.push(message),
    end: (): void => {},
    listen: undefined as ((said: FromWebLlm) => void) | undefined,
  };
  return { worker, asked, say: (said: FromWebLlm): void => worker.listen?.(said) };
}

async function until(check: () => boolean): Promise<void> {
  for (let tries = 0; tries < 2000 && !check(); tries++) await Bun.sleep(5);
  expect(check()).toBe(true);
}

test("concurrent chats get their own answers, and a waiting one can be canceled", async () => {
  const { worker, asked, say } = loadedWorker();
  const json = async <T>(): Promise<T> => ({ digest: "digest", files: [], config: {} }) as T;
  const api = { ...makeApi({ storage: sessionKept() }), json };
  const place = { api, words: () => en, present: () => worker, hold: () => {}, inTurn: makeQueue() };
  const ask = async (content: string, { signal } = new AbortController()): Promise<string> => {
    const events: AnswerEvent[] = [];
    const question = { model: "m", messages: [{ role: "user", content }], options: {} };
    for await (const event of answer(place, question, signal)) events.push(event);
    return events.map((event) => (event.kind === "text" ? event.text : "")).join("");
  };
  const givenUp = new AbortController();
  const first = ask("one");
  const waiting = ask("two", givenUp);
  const last = ask("three");
  await until(() => asked.length > 0);
  givenUp.abort();
  await expect(waiting).rejects.toThrow("canceled");
  for (const [count, text] of [[1, "for one"] as const, [2, "for three"] as const]) {
    await until(() => asked.length === count);
    say({ kind: "text", text });
    say({ kind: "done", reason: "stop", promptTokens: 1, tokens: 1 });
  }
  expect(await Promise.all([first, last])).toEqual(["for one", "for three"]);
  expect(asked.map(({ kind }) => kind)).toEqual(["chat", "chat"]); // no chat was stopped for another
});

const sessionKept = () => ({ getItem: () => null, setItem: () => {}, removeItem: () => {} });
