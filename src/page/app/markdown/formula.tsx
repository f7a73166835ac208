/** A formula as MathML elements; its source until that is loaded, and if it fails. */
import { createElement, type ComponentChild } from "preact";
import { useEffect, useMemo, useState } from "preact/hooks";
import { useApp } from "../context.ts";
import type { MathToken } from "./math.ts";
import type { DrawMath, MathPiece } from "./temml.ts";

export function Formula({ raw, text, isDisplay }: Pick<MathToken, "raw" | "text" | "isDisplay">) {
  const { loadMath } = useApp();
  const [draw, setDraw] = useState<{ readonly by: DrawMath } | undefined>(undefined);
  useEffect(() => {
    let isHere = true;
    loadMath().then(
      (by) => isHere && setDraw({ by }),
      () => {}, // the source is fine
    );
    return () => void (isHere = false);
  }, []);
  const drawn = useMemo(() => draw?.by(text, isDisplay), [draw, text, isDisplay]);
  const source = raw.trim();
  if (drawn === undefined) return <code class={isDisplay ? "tex display" : "tex"}>{source}</code>;
  return (
    <span class={isDisplay ? "formula display" : "formula"} data-tex={source} {...(isDisplay ? { tabIndex: 0 } : {})}>
      {elementOf(drawn)}
    </span>
  );
}

const elementOf = (piece: MathPiece): ComponentChild =>
  typeof piece === "string"
    ? piece
    : createElement(piece.type, { ...piece.attributes, style: piece.style }, ...piece.children.map(elementOf));

/** Copies a selection to the clipboard with formulas as their source. */
export function copyWithSource(event: ClipboardEvent): void {
  const selection = getSelection();
  if (!selection || selection.rangeCount === 0 || !event.clipboardData) return;
  const range = selection.getRangeAt(0).cloneRange();
  const [first, last] = [formulaAround(range.startContainer), formulaAround(range.endContainer)];
  if (first) range.setStartBefore(first);
  if (last) range.setEndAfter(last);
  const copy = document.createElement("div");
  copy.append(range.cloneContents());
  const formulas = [...copy.querySelectorAll<HTMLElement>("[data-tex]")];
  if (formulas.length === 0) return;
  for (const each of formulas) each.replaceWith(each.dataset["tex"] ?? "");
  copy.className = "off-screen copied-text";
  document.body.append(copy); // only rendered elements have lines
  event.clipboardData.setData("text/plain", copy.innerText);
  copy.remove();
  event.preventDefault();
}

const formulaAround = (node: Node): Element | undefined =>
  (node instanceof Element ? node : node.parentElement)?.closest("[data-tex]") ?? undefined;
