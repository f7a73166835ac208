/** A dialog over the page: the browser's own, which traps the focus and closes with Escape. */
import type { ComponentChildren } from "preact";
import { useId, useLayoutEffect, useRef } from "preact/hooks";
import { useWords } from "../context.ts";
import { IconButton } from "./controls.tsx";

interface DialogProps {
  readonly title: string;
  readonly onClose: () => void;
  readonly children: ComponentChildren;
  /** `sheet`: at the side of the page, for reading; the other kinds are for input, if they have a field. */
  readonly kind?: "middle" | "sheet" | "palette";
}

export function Dialog({ title, onClose, children, kind = "middle" }: DialogProps) {
  const ref = useRef<HTMLDialogElement>(null);
  const id = useId();
  useLayoutEffect(() => {
    const before = document.activeElement;
    ref.current?.showModal(); // the browser focuses the first focusable element, the close button
    if (kind !== "sheet") ref.current?.querySelector<HTMLElement>("input, textarea")?.focus();
    return () => {
      if (before instanceof HTMLElement) before.focus();
    };
  }, []);
  return (
    <dialog
      ref={ref}
      class={`dialog ${kind}`}
      aria-labelledby={id}
      onClose={onClose}
      onClick={(event) => event.target === ref.current && ref.current?.close()}
    >
      <div class="dialog-inside">
        <header class={kind === "palette" ? "off-screen" : "dialog-head"}>
          <h2 id={id}>{title}</h2>
          <IconButton icon="close" label={useWords().base.close} onClick={() => ref.current?.close()} />
        </header>
        {children}
      </div>
    </dialog>
  );
}
