/** Reading aloud, with fake voices: the browser of these tests has none. Settings of the page. */
import { expect, test } from "bun:test";
import type { Page } from "playwright-core";
import { LANGUAGES } from "../../src/page/app/words/index.ts";
import { violationsOf } from "./axe.ts";
import { importChat } from "./import-chat.ts";
import { NARROW, openPage, WIDE, type World } from "./page.ts";

interface Spoken {
  readonly text: string;
  readonly voice: string | undefined;
}

type SpeakingWindow = typeof globalThis & { spoken: Spoken[]; endSpeech: () => void };

/** Voices that speak until they are cancelled. */
async function withVoices(page: Page): Promise<void> {
  await page.addInitScript(() => {
    const win = globalThis as SpeakingWindow;
    win.spoken = [];
    let queue: SpeechSynthesisUtterance[] = [];
    const voices = [
      { lang: "en-US", name: "Far", localService: false, default: true },
      { lang: "en-US", name: "English", localService: true, default: false },
      { lang: "ru-RU", name: "Russian", localService: true, default: false },
    ];
    class Utterance {
      text: string;
      lang = "";
      voice: { name: string } | undefined;
      onend: (() => void) | undefined;
      onerror: (() => void) | undefined;
      constructor(text: string) {
        this.text = text;
      }
    }
    const synthesis = {
      getVoices: () => voices,
      speak(utterance: SpeechSynthesisUtterance) {
        queue.push(utterance);
        win.spoken.push({ text: utterance.text, voice: utterance.voice?.name });
      },
      cancel: () => (queue = []),
    };
    win.endSpeech = () => {
      for (const each of queue.splice(0)) each.onend?.call(each, new Event("end") as SpeechSynthesisEvent);
    };
    Object.defineProperty(win, "speechSynthesis", { value: synthesis });
    Object.defineProperty(win, "SpeechSynthesisUtterance", { value: Utterance });
  });
  await page.reload();
}

const spoken = (page: Page): Promise<Spoken[]> => page.evaluate(() => (globalThis as SpeakingWindow).spoken.splice(0));

function aloud(world: () => World): void {
  test("an answer is read aloud without its code, in a voice of its language, and can be stopped", async () => {
    const { page, pageErrors } = await openPage(world().browser, `${world().hearth.url}/ui`);
    const texts = ["Hi.", "Take **this**:\n\n```js\nlet x = 1;\n```\n\nDone.", "And?", "Привет, **мир**."];
    await importChat(page, "Unheard", texts);
    expect(await page.getByRole("button", { name: "Read aloud" }).count()).toBe(0); // no voices
    await withVoices(page);
    const first = page.locator(".message.assistant").first();
    await first.hover();
    await first.getByRole("button", { name: "Read aloud" }).click();
    expect(await spoken(page)).toEqual([{ text: "Take this:\nDone.", voice: "English" }]);
    await first.getByRole("button", { name: "Stop reading" }).click();
    await first.getByRole("button", { name: "Read aloud" }).click();
    const last = page.locator(".message.assistant").last();
    await last.getByRole("button", { name: "Read aloud" }).click(); // instead of the first
    await first.getByRole("button", { name: "Read aloud" }).waitFor();
    expect((await spoken(page)).at(-1)).toEqual({ text: "Привет, мир.", voice: "Russian" });
    expect(await violationsOf(page)).toEqual([]);
    await page.evaluate(() => (globalThis as SpeakingWindow).endSpeech());
    await last.getByRole("button", { name: "Read aloud" }).waitFor();
    expect(pageErrors).toEqual([]);
  }, 60_000);
}

function settings(world: () => World): void {
  test("the page's settings choose its language", async () => {
    const { page, pageErrors } = await openPage(world().browser, `${world().hearth.url}/ui#/system`);
    const panel = page.getByRole("region", { name: "This page" });
    await panel.waitFor();
    for (const viewport of [WIDE, NARROW]) {
      for (const colorScheme of ["light", "dark"] as const) {
        await page.setViewportSize(viewport);
        await page.emulateMedia({ colorScheme });
        expect(await violationsOf(page)).toEqual([]);
      }
    }
    const languages = Object.keys(LANGUAGES);
    const chooser = panel.getByRole("combobox");
    expect(await chooser.count()).toBe(languages.length > 1 ? 1 : 0);
    for (const code of languages.length > 1 ? languages : []) {
      await page.locator(".page-settings select").selectOption(code);
      await page.locator(`html[lang="${code}"]`).waitFor({ state: "attached" });
    }
    expect(pageErrors).toEqual([]);
  }, 60_000);
}

export const speechCases = [aloud, settings] as const;
