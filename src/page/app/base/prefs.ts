/** Preferences of this browser: colours, and defaults of new chats. */
import { effect, signal, type Signal } from "@preact/signals";
import type { Kept } from "./kept.ts";
import { PLACES, type Place } from "../chat/tree.ts";

export const THEMES = ["auto", "light", "dark"] as const;
export type Theme = (typeof THEMES)[number];

const SWITCH = ["on", "off"] as const;
type Switch = (typeof SWITCH)[number];

export interface Prefs {
  readonly theme: Signal<Theme>;
  /** The model of the last new chat. */
  readonly model: Signal<string>;
  readonly place: Signal<Place>;
  /** `on` if a model writes titles of chats. */
  readonly titles: Signal<Switch>;
  /** The page's language: a code such as `de`, or `auto`. */
  readonly language: Signal<string>;
  /** The backend of the page's own engine: `auto`, `webgpu`, … */
  readonly backend: Signal<string>;
}

export function makePrefs(storage: Kept, root: HTMLElement): Prefs {
  const kept = <T extends string>(name: string, first: T, allowed?: readonly T[]): Signal<T> => {
    const found = storage.getItem(`hearth-${name}`) as T | null;
    const value = signal<T>(found !== null && (allowed?.includes(found) ?? true) ? found : first);
    effect(() => storage.setItem(`hearth-${name}`, value.value));
    return value;
  };
  const theme = kept<Theme>("theme", "auto", THEMES);
  effect(() => void (root.dataset["theme"] = theme.value));
  return {
    theme,
    model: kept<string>("model", ""),
    place: kept<Place>("place", "server", PLACES),
    titles: kept<Switch>("titles", "on", SWITCH),
    language: kept<string>("language", "auto"),
    backend: kept<string>("backend", "auto"),
  };
}
