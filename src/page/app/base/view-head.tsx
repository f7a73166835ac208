/** The head of a view: the button for the list of chats on a narrow page, a title, also of the tab, and actions. */
import type { ComponentChildren } from "preact";
import { useEffect } from "preact/hooks";
import { useApp, useWords } from "../context.ts";
import { Icon } from "./icons.tsx";

export function ViewHead({ title, children }: { title: string; children?: ComponentChildren }) {
  const { isMenuOpen } = useApp();
  useEffect(() => void (document.title = `${title} · Hearth`), [title]);
  return (
    <header class="view-head">
      <button
        type="button"
        class="icon-button menu-button"
        aria-label={useWords().base.chatsAndViews}
        aria-expanded={isMenuOpen.value}
        onClick={() => (isMenuOpen.value = true)}
      >
        <Icon name="menu" />
      </button>
      <h1>{title}</h1>
      <div class="view-actions">{children}</div>
    </header>
  );
}
