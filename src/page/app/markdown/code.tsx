/** A code block: its language, a copy button, and colours once it is complete. */
import { useEffect, useState } from "preact/hooks";
import { useApp, useWords } from "../context.ts";
import type { CodeNode, Highlight } from "./highlight.ts";
import { CopyButton } from "../base/copy.tsx";

/** @param isOver true if it is complete */
export function CodeBlock({ code, language, isOver }: { code: string; language: string; isOver: boolean }) {
  const { loadHighlight } = useApp();
  const { markdown: words } = useWords();
  const [highlight, setHighlight] = useState<{ readonly by: Highlight } | undefined>(undefined);
  const wantsColours = isOver && language !== "";
  useEffect(() => {
    if (!wantsColours) return undefined;
    let isHere = true;
    loadHighlight().then(
      (by) => isHere && setHighlight({ by }),
      () => {}, // plain text is fine
    );
    return () => void (isHere = false);
  }, [wantsColours]);
  const nodes = wantsColours ? highlight?.by(language, code) : undefined;
  return (
    <figure class="code">
      <figcaption>
        <span>{language || "text"}</span>
        <CopyButton text={() => code} label={words.copyCode} />
      </figcaption>
      <pre tabIndex={0} aria-label={language ? words.codeIn(language) : words.code}>
        <code>{nodes ? nodes.map(nodeOf) : code}</code>
      </pre>
    </figure>
  );
}

const nodeOf = (node: CodeNode) =>
  typeof node === "string" ? node : <span class={node.classes}>{node.children.map(nodeOf)}</span>;
