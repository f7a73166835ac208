/** The menu of models: a list with their capabilities, and optionally the place where they run. */
import { useSignal, type Signal } from "@preact/signals";
import { useLayoutEffect, useRef } from "preact/hooks";
import { useApp, useWords } from "../context.ts";
import { bytesText } from "../base/format.ts";
import { Icon, type IconName } from "../base/icons.tsx";
import { shortName, type StoredModel } from "../models/models.ts";
import type { Words } from "../words/index.ts";
import { PLACES, type Place } from "./tree.ts";
import { typed } from "../base/controls.tsx";

interface ModelMenuProps {
  readonly model: string;
  readonly place: Place;
  readonly onChoose: (model: string, place: Place) => void;
}

/** A longer list has a search field. */
const SEARCH_FROM = 7;
const PLACE_ICONS: Readonly<Record<Place, IconName>> = { server: "server", page: "page", webllm: "page" };

export function ModelMenu({ model, place, onChoose }: ModelMenuProps) {
  const { models } = useApp();
  const { modelMenu: words } = useWords();
  const isOpen = useSignal(false);
  const root = useRef<HTMLDivElement>(null);
  const isGone = model !== "" && models.list.value !== undefined && !models.find(model);
  const name = model === "" ? words.none : lastPart(shortName(model)) + (isGone ? ` (${words.gone})` : "");
  useClosing(root, isOpen);
  return (
    <div class="model-menu" ref={root}>
      <button
        type="button"
        class="model-button"
        aria-haspopup="dialog"
        aria-expanded={isOpen.value}
        aria-label={words.button(name) + (place === "server" ? "" : `, ${words.places[place]}`)}
        title={shortName(model)}
        onClick={() => {
          if (!isOpen.value) void models.refresh();
          isOpen.value = !isOpen.value;
        }}
      >
        {place !== "server" && <Icon name={PLACE_ICONS[place]} size={15} />}
        <span>{name}</span>
        <Icon name="down" size={14} />
      </button>
      {isOpen.value && (
        <Panel
          {...{ model, place }}
          onChoose={(next, where, isOver) => {
            onChoose(next, where);
            if (!isOver) return;
            isOpen.value = false;
            document.querySelector<HTMLElement>("#composer")?.focus();
          }}
        />
      )}
    </div>
  );
}

/** Without registry and owner, which would fill the row. */
const lastPart = (name: string): string => name.slice(name.lastIndexOf("/") + 1);

/** Closes with Escape, and on a press outside. */
function useClosing(root: { readonly current: HTMLElement | null }, isOpen: Signal<boolean>): void {
  useLayoutEffect(() => {
    if (!isOpen.value) return undefined;
    const leave = (event: Event): void => {
      if (!root.current?.contains(event.target as Node)) isOpen.value = false;
    };
    const onKey = (event: KeyboardEvent): void => {
      if (event.key !== "Escape") return;
      event.stopPropagation();
      isOpen.value = false;
      root.current?.querySelector("button")?.focus();
    };
    const { current } = root;
    document.addEventListener("pointerdown", leave);
    current?.addEventListener("keydown", onKey);
    return () => {
      document.removeEventListener("pointerdown", leave);
      current?.removeEventListener("keydown", onKey);
    };
  }, [isOpen.value]);
}

interface PanelProps extends Omit<ModelMenuProps, "onChoose"> {
  readonly onChoose: (model: string, place: Place, isOver: boolean) => void;
}

function Panel({ model, place, onChoose }: PanelProps) {
  const { models } = useApp();
  const { modelMenu: words, base } = useWords();
  const sought = useSignal("");
  const panel = useRef<HTMLDivElement>(null);
  const all = models.chatting.value;
  const shown = all.filter(({ name }) => name.toLowerCase().includes(sought.value.trim().toLowerCase()));
  useLayoutEffect(() => {
    const first = ["input.input", "[aria-current=true]", ".model-row", "a"]
      .map((each) => panel.current?.querySelector<HTMLElement>(each))
      .find(Boolean);
    first?.focus();
  }, []);
  return (
    <div class="model-panel" role="dialog" aria-label={words.title} ref={panel} onKeyDown={walk}>
      {all.length >= SEARCH_FROM && (
        <input class="input" aria-label={words.search} placeholder={words.search} {...typed(sought)} />
      )}
      <ul>
        {shown.map((each) => (
          <li key={each.name}>
            <ModelRow
              model={each}
              isChosen={each === models.find(model)}
              onChoose={() => onChoose(each.name, models.placeOf(each.name, place), true)}
            />
          </li>
        ))}
      </ul>
      {shown.length === 0 && <p class="quiet">{all.length === 0 ? words.none : base.noMatches}</p>}
      <a class="model-more" href="#/models">
        <Icon name="download" size={16} />
        {words.more}
      </a>
      {model !== "" && <Places {...{ model, place }} onChoose={(where) => onChoose(model, where, false)} />}
    </div>
  );
}

/** Arrow keys move through the models; Enter in the field takes the first. */
function walk(event: KeyboardEvent): void {
  const panel = event.currentTarget as HTMLElement;
  const all = [...panel.querySelectorAll<HTMLElement>("input.input, .model-row, .model-more, summary")];
  const at = all.indexOf(document.activeElement as HTMLElement);
  const to = { ArrowDown: at + 1, ArrowUp: at - 1 }[event.key];
  const isField = document.activeElement instanceof HTMLInputElement;
  if (to !== undefined && !(isField && at < 0)) all.at(to % all.length)?.focus();
  else if (event.key === "Enter" && isField) panel.querySelector<HTMLElement>(".model-row")?.click();
  else return;
  event.preventDefault();
  event.stopPropagation();
}

function ModelRow({ model, isChosen, onChoose }: { model: StoredModel; isChosen: boolean; onChoose: () => void }) {
  const { models } = useApp();
  const { modelMenu: words } = useWords();
  const isLoaded = models.loadedOf(model.name) !== undefined;
  return (
    <button type="button" class="model-row" aria-current={isChosen} title={model.name} onClick={onChoose}>
      <span class="model-name">{lastPart(shortName(model.name))}</span>
      <Signs model={model} />
      {isLoaded && <span class="dot still" role="img" aria-label={words.loaded} title={words.loaded} />}
      <span class="quiet">{bytesText(model.size)}</span>
    </button>
  );
}

const SIGNS = [
  { capability: "vision", icon: "eye", word: "sees" },
  { capability: "tools", icon: "tool", word: "calls" },
  { capability: "thinking", icon: "bulb", word: "thinks" },
] as const satisfies readonly { icon: IconName; word: keyof Words["modelMenu"]; capability: string }[];

/** Capabilities of a model besides chat. */
export function Signs({ model: { capabilities = [] } }: { model: Pick<StoredModel, "capabilities"> }) {
  const { modelMenu: words } = useWords();
  return (
    <span class="signs">
      {SIGNS.filter(({ capability }) => capabilities.includes(capability)).map(({ icon, word }) => (
        <span role="img" aria-label={words[word]} title={words[word]}>
          <Icon name={icon} size={15} />
        </span>
      ))}
    </span>
  );
}

function Places({ model, place, onChoose }: { model: string; place: Place; onChoose: (place: Place) => void }) {
  const { models } = useApp();
  const { modelMenu: words } = useWords();
  const possible = models.placesOf(model);
  return (
    <details class="places">
      <summary>
        <Icon name={PLACE_ICONS[place]} size={16} />
        {words.where(words.places[place])}
        <Icon name="down" size={14} />
      </summary>
      {PLACES.map((each) => {
        const isPossible = each === place || possible.includes(each);
        return (
          <label>
            <input
              type="radio"
              name="place"
              checked={each === place}
              disabled={!isPossible}
              onChange={() => onChoose(each)}
            />
            <span>
              {words.places[each]}
              {!isPossible && <small>{words.whyNot[each]}</small>}
            </span>
          </label>
        );
      })}
    </details>
  );
}
