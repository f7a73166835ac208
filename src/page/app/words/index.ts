/** The language of the page. English is included; other languages are scripts that are fetched on demand. */
import { effect, signal, type ReadonlySignal } from "@preact/signals";
import { en, type Words } from "./en.ts";

export type { Words };

/** Languages by code: the language's own name, and a function that loads its words. */
export const LANGUAGES = {
  en: { name: "English", load: async () => en },
  de: { name: "Deutsch", load: async () => (await import("./de.ts")).de },
  es: { name: "Español", load: async () => (await import("./es.ts")).es },
  fr: { name: "Français", load: async () => (await import("./fr.ts")).fr },
  ja: { name: "日本語", load: async () => (await import("./ja.ts")).ja },
  zh: { name: "简体中文", load: async () => (await import("./zh.ts")).zh },
} satisfies Readonly<Record<string, { readonly name: string; readonly load: () => Promise<Words> }>>;

type Language = keyof typeof LANGUAGES;

const isLanguage = (code: string): code is Language => Object.hasOwn(LANGUAGES, code);

/** The first of these languages that the page has; regions are ignored. */
const chosen = (codes: readonly string[]): Language =>
  codes.map((code) => code.split("-")[0]!.toLowerCase()).find(isLanguage) ?? "en";

interface LanguageParts {
  /** A code, or `auto`: the browser's. */
  readonly language: ReadonlySignal<string>;
  readonly preferred: readonly string[];
  /** Its `lang` is set. */
  readonly root: HTMLElement;
}

/** The words of the current language. If another language cannot be fetched, the current one stays. */
export async function makeWords({ language, preferred, root }: LanguageParts): Promise<ReadonlySignal<Words>> {
  const words = signal<Words>(en);
  let asked = 0;
  let loading: Promise<void> | undefined;
  effect(() => {
    const code = chosen([language.value, ...preferred]);
    const number = ++asked;
    const show = (found: Words): void => {
      if (number !== asked) return; // another language was chosen meanwhile
      root.lang = code;
      words.value = found;
    };
    loading = LANGUAGES[code].load().then(show, () => {});
  });
  await loading; // avoids a flash of English
  return words;
}
