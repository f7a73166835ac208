/** A button that opens a menu. Arrow keys move through it, Escape closes it. */
import { useSignal } from "@preact/signals";
import type { ComponentChildren } from "preact";
import { useLayoutEffect, useId, useRef } from "preact/hooks";
import { Icon, type IconName } from "./icons.tsx";

export interface MenuItem {
  readonly label: string;
  readonly icon?: IconName;
  readonly isDangerous?: boolean;
  readonly onChoose: () => void;
}

interface MenuProps {
  readonly label: string;
  /** Called when the menu opens. */
  readonly items: () => readonly MenuItem[];
  readonly children: ComponentChildren;
  readonly class?: string;
}

/** Shows a menu at the other side of its button if more of it is visible there. */
function turn(menu: HTMLElement): void {
  const list = menu.querySelector<HTMLElement>(".menu-list")!;
  const frame = (menu.closest(".log, .chat-list") ?? document.body).getBoundingClientRect();
  const hidden = (): number => {
    const { top, bottom } = list.getBoundingClientRect();
    return Math.max(0, frame.top - top) + Math.max(0, bottom - frame.bottom);
  };
  const before = hidden();
  list.classList.add("turned");
  if (hidden() >= before) list.classList.remove("turned");
}

export function Menu({ label, items, children, class: name = "icon-button" }: MenuProps) {
  const isOpen = useSignal(false);
  const root = useRef<HTMLDivElement>(null);
  const id = useId();
  const entries = (): HTMLButtonElement[] => [
    ...(root.current?.querySelectorAll<HTMLButtonElement>("[role=menuitem]") ?? []),
  ];
  useLayoutEffect(() => {
    if (!isOpen.value) return undefined;
    turn(root.current!);
    // focus now: the next key is for the menu
    entries()[0]?.focus();
    const leave = (event: Event): void => {
      if (!root.current?.contains(event.target as Node)) isOpen.value = false;
    };
    document.addEventListener("pointerdown", leave);
    return () => document.removeEventListener("pointerdown", leave);
  }, [isOpen.value]);
  const close = (): void => {
    isOpen.value = false;
    root.current?.querySelector("button")?.focus();
  };
  const onKeyDown = (event: KeyboardEvent): void => {
    const all = entries();
    const at = all.indexOf(document.activeElement as HTMLButtonElement);
    const to = { ArrowDown: at + 1, ArrowUp: at - 1, Home: 0, End: -1 }[event.key];
    if (event.key === "Escape") close();
    else if (event.key === "Tab") isOpen.value = false;
    else if (to !== undefined) all.at(to % all.length)?.focus();
    else return;
    if (event.key !== "Tab") event.preventDefault();
    event.stopPropagation();
  };
  return (
    <div class="menu" ref={root} onKeyDown={isOpen.value ? onKeyDown : undefined}>
      <button
        type="button"
        class={name}
        aria-label={label}
        title={label}
        aria-haspopup="menu"
        aria-expanded={isOpen.value}
        aria-controls={isOpen.value ? id : undefined}
        onClick={() => (isOpen.value = !isOpen.value)}
      >
        {children}
      </button>
      {isOpen.value && (
        <div class="menu-list" role="menu" id={id} aria-label={label}>
          {items().map(({ label: text, icon, isDangerous, onChoose }) => (
            <button
              type="button"
              role="menuitem"
              class={isDangerous ? "dangerous" : undefined}
              onClick={() => {
                close();
                onChoose();
              }}
            >
              {icon && <Icon name={icon} size={16} />}
              <span>{text}</span>
            </button>
          ))}
        </div>
      )}
    </div>
  );
}
