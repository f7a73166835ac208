/** The language of the page. English comes with it; the others are scripts that it fetches when they are wanted. */
import { effect, signal, type ReadonlySignal } from "@preact/signals";
import { en, type Words } from "./en.ts";

export type { Words };

/** Each language by its code: its name in itself, and how to get its words. */
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
  /** Is given the `lang` of the page. */
  readonly root: HTMLElement;
}

/** The words of the language that is set. The page keeps the language it has where another one cannot be fetched. */
export async function makeWords({ language, preferred, root }: LanguageParts): Promise<ReadonlySignal<Words>> {
  const words = signal<Words>(en);
  let asked = 0;
  let loading: Promise<void> | undefined;
  effect(() => {
    const code = chosen([language.value, ...preferred]);
    const number = ++asked;
    const show = (found: Words): void => {
      if (number !== asked) return; // another one was chosen meanwhile
      root.lang = code;
      words.value = found;
    };
    loading = LANGUAGES[code].load().then(show, () => {});
  });
  await loading; // so that nobody sees English first
  return words;
}
