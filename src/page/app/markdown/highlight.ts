/** Syntax highlighting, fetched when code is shown. The result is a tree, never markup. */
import { common, createLowlight } from "lowlight";

/** A piece of code: text, or a span with classes. */
export type CodeNode = string | { readonly classes: string; readonly children: readonly CodeNode[] };

/** Highlighting longer code would take longer than a frame. */
const CHARS_MAX = 60_000;

export type Highlight = (language: string, code: string) => readonly CodeNode[] | undefined;

/** Returns undefined for an unknown language, and for code that is too long. */
export function makeHighlight(): Highlight {
  const lowlight = createLowlight(common);
  return (language, code) => {
    if (code.length > CHARS_MAX || !lowlight.registered(language)) return undefined;
    return nodesOf(lowlight.highlight(language, code).children);
  };
}

type Child = ReturnType<ReturnType<typeof createLowlight>["highlight"]>["children"][number];

const nodesOf = (children: readonly Child[]): CodeNode[] =>
  children.flatMap((child): CodeNode[] => {
    if (child.type === "text") return [child.value];
    if (child.type !== "element") return [];
    const { className } = child.properties;
    return [{ classes: Array.isArray(className) ? className.join(" ") : "", children: nodesOf(child.children) }];
  });
