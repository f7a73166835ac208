/** The language of the page. English comes with it; another language is a script that is fetched when it is wanted. */
import { effect, signal, type ReadonlySignal } from "@preact/signals";
import { en } from "./en.ts";

export type Words = typeof en;

/** How to get each language, by its code. Others: `de: async () => (await import("./de.ts")).de`. */
const LANGUAGES = { en: async () => en } satisfies Readonly<Record<string, () => Promise<Words>>>;

type Language = keyof typeof LANGUAGES;

const isLanguage = (code: string): code is Language => Object.hasOwn(LANGUAGES, code);

/** The first of these languages that the page has; regions are ignored. */
const chosen = (codes: readonly string[]): Language =>
  codes.map((code) => code.split("-")[0]!.toLowerCase()).find(isLanguage) ?? "en";

interface LanguageParts {
  /** A code, or `auto`: the browser's. */
  readonly language: ReadonlySignal<string>;
  readonly preferred: readonly string[];
  /** Is given the `lang` of the page. */
  readonly root: HTMLElement;
}

/** The words of the language that is set, in English until they are there. */
export function makeWords({ language, preferred, root }: LanguageParts): ReadonlySignal<Words> {
  const words = signal<Words>(en);
  let asked = 0;
  effect(() => {
    const code = chosen(language.value === "auto" ? preferred : [language.value]);
    const number = ++asked;
    const show = (found: Words): void => {
      if (number !== asked) return; // another one was chosen meanwhile
      root.lang = code;
      words.value = found;
    };
    LANGUAGES[code]().then(show, () => {}); // the page stays in the language that it has
  });
  return words;
}
