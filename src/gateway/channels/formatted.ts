/**
 * Reads the Markdown of an answer into a text with styles, for platforms that do not read Markdown. The text is what a
 * person sees: without markers, and legible without the styles too.
 */
import { Marked, type Token, type Tokens } from "marked";

export type Style = "bold" | "italic" | "strike" | "code" | "pre" | "link";

/** A styled part of a text. Two of them are apart, or one is inside the other. */
export interface Span {
  readonly style: Style;
  /** In UTF-16 units. */
  readonly start: number;
  readonly end: number;
  /** The address of a link: `http(s):`, `mailto:` or `tel:`. */
  readonly url?: string;
  /** The language of a `pre`, as its author wrote it. */
  readonly language?: string;
}

export interface Formatted {
  readonly text: string;
  /** An outer one comes before those inside it. */
  readonly spans: readonly Span[];
}

/** Deeply nested quotes or lists take seconds to parse. */
const NESTED = /(?:>[ \t]?){40}|(?:[-*+][ \t]){40}/;
/** The lexer's time grows with the square of the number of these, and more. */
const MARKERS = /[*_~`[<]+/g;
const MARKERS_MAX = 500;
const WEB_LINK = /^(?:https?:\/\/|mailto:|tel:)[^\s<>|]+$/i;
/** A text that readers take for an address. */
const LIKE_ADDRESS = /^\S+\.\S+$|:\/\//;

/**
 * Markdown that cannot be parsed, or that shows nothing, stays as it is.
 * @param hasLinks false: the platform has no links with labels, so their addresses are in the text
 */
export function readMarkdown(markdown: string, { hasLinks }: { hasLinks: boolean }): Formatted {
  const plain: Formatted = { text: markdown, spans: [] };
  if (NESTED.test(markdown) || (markdown.match(MARKERS)?.length ?? 0) > MARKERS_MAX) return plain;
  try {
    const writer = new Writer(hasLinks);
    writer.blocks(new Marked({ gfm: true }).lexer(markdown));
    const formatted = writer.end();
    return formatted.text.trim() === "" ? plain : formatted;
  } catch {
    return plain; // nested too deep for the lexer
  }
}

class Writer {
  #text = "";
  readonly #spans: Span[] = [];
  /** Begins each line, inside quotes and lists. */
  #indent = "";
  /** Styles of the part that is written now. */
  readonly #open = new Set<Style>();
  readonly #hasLinks: boolean;

  constructor(hasLinks: boolean) {
    this.#hasLinks = hasLinks;
  }

  end(): Formatted {
    const text = this.#text.trimEnd();
    const spans = this.#spans
      .map((span) => ({ ...span, end: Math.min(span.end, text.length) }))
      .filter(({ start, end }) => start < end)
      .toSorted((a, b) => a.start - b.start || b.end - a.end);
    return { text, spans };
  }

  #write(text: string): void {
    const blank = `\n${this.#indent.trimEnd()}`;
    this.#text += text.replace(/\n/g, (_, at: number) => (text[at + 1] === "\n" ? blank : `\n${this.#indent}`));
  }

  #styled(span: Pick<Span, "style" | "url" | "language">, write: () => void): void {
    const isPlain = this.#open.has(span.style) || (span.style === "code" && this.#open.has("link"));
    if (isPlain) return write();
    const place = this.#spans.length;
    const start = this.#text.length;
    this.#open.add(span.style);
    write();
    this.#open.delete(span.style);
    this.#spans.splice(place, 0, { ...span, start, end: this.#text.length });
  }

  #indented(more: string, write: () => void): void {
    const before = this.#indent;
    this.#indent += more;
    write();
    this.#indent = before;
  }

  /** Keeps at most one blank line between blocks, where the Markdown has some. */
  blocks(tokens: readonly Token[]): void {
    let breaks = 0;
    for (const token of tokens) {
      if (token.type !== "space") {
        this.#write("\n".repeat(Math.min(breaks, 2)));
        this.#block(token);
        breaks = this.#text === "" ? 0 : 1;
      }
      if (breaks > 0 && /\n[ \t]*\n[ \t]*$/.test(token.raw)) breaks = 2;
    }
  }

  #block(token: Token): void {
    switch (token.type) {
      case "heading":
        return this.#styled({ style: "bold" }, () => this.inline(token.tokens ?? []));
      case "code": {
        const language = /^[\w+#.-]{1,32}$/.exec(token.lang ?? "")?.[0];
        return this.#styled({ style: "pre", ...(language ? { language } : {}) }, () => this.#write(token.text));
      }
      case "blockquote":
        this.#text += "> ";
        return this.#indented("> ", () => this.blocks(token.tokens ?? []));
      case "list":
        return this.#list(token as Tokens.List);
      case "table":
        return this.#styled({ style: "pre" }, () => this.#write(tableOf(token as Tokens.Table)));
      case "hr":
        return this.#write("———");
      case "def":
      case "html":
        return this.#write(token.raw.trimEnd());
      default:
        return this.inline(token.type === "paragraph" || token.type === "text" ? (token.tokens ?? [token]) : [token]);
    }
  }

  #list({ items, ordered, start }: Tokens.List): void {
    for (const [i, { task, checked, tokens }] of items.entries()) {
      const number = ordered ? `${Number(start) + i}. ` : "";
      const mark = task ? (checked ? "☑ " : "☐ ") : "";
      const head = number + mark || "• ";
      if (i > 0) this.#write("\n");
      this.#text += head;
      this.#indented(" ".repeat(head.length), () => this.blocks(tokens.filter(({ type }) => type !== "checkbox")));
    }
  }

  inline(tokens: readonly Token[]): void {
    for (const token of tokens) this.#part(token);
  }

  #part(token: Token): void {
    switch (token.type) {
      case "strong":
      case "em":
      case "del":
        return this.#styled({ style: STYLES[token.type] }, () => this.inline(token.tokens ?? []));
      case "codespan":
        return this.#styled({ style: "code" }, () => this.#write(token.text));
      case "link":
      case "image":
        return this.#link(token as Tokens.Link | Tokens.Image);
      case "br":
        return this.#write("\n");
      case "escape":
        return this.#write(token.text);
      default:
        return token.type === "text" && token.tokens ? this.inline(token.tokens) : this.#write(token.raw);
    }
  }

  /** A label that looks like an address does not hide another one. */
  #link({ type, raw, href, text, tokens }: Tokens.Link | Tokens.Image): void {
    if (raw === text || raw.startsWith("<") || text === href) return this.#write(text);
    if (!WEB_LINK.test(href)) return this.#write(raw);
    const label = (): void => (type === "link" && tokens ? this.inline(tokens) : this.#write(text || href));
    if (this.#hasLinks && !LIKE_ADDRESS.test(text)) return this.#styled({ style: "link", url: href }, label);
    label();
    this.#write(` (${href})`);
  }
}

const STYLES = { strong: "bold", em: "italic", del: "strike" } as const;

/** The text of a table, without styles: cells in columns of equal width. */
function tableOf({ header, rows }: Tokens.Table): string {
  const textOf = ({ tokens }: Tokens.TableCell): string => {
    const writer = new Writer(false);
    writer.inline(tokens);
    return writer.end().text;
  };
  const lines = [header, ...rows].map((cells) => cells.map(textOf));
  const widths = header.map((_, column) => Math.max(...lines.map((cells) => cells[column]?.length ?? 0)));
  const line = (cells: readonly string[]): string =>
    cells.map((cell, column) => cell.padEnd(widths[column] ?? 0)).join(" | ");
  const [first = [], ...others] = lines;
  const rule = widths.map((width) => "-".repeat(width)).join("-|-");
  return [line(first), rule, ...others.map(line)].map((each) => each.trimEnd()).join("\n");
}

export interface Marks {
  /** The marks before and after a span; undefined: the platform has no such style. */
  readonly of: (span: Span) => readonly [string, string] | undefined;
  /** Applied to the text between marks. */
  readonly escape?: (text: string) => string;
}

/** Keeps a mark beside a letter effective: platforms ignore marks inside of words. */
const NO_SPACE = "\u200b";
const WORD = /[\p{L}\p{N}\p{M}_]/u;

/** The text with a platform's own marks, which end with each line except around code blocks. */
export function withMarks({ text, spans }: Formatted, { of, escape = (part) => part }: Marks): string {
  const marked = spans.flatMap((span) => {
    const marks = of(span);
    return marks ? linesOf(text, span).map((line) => ({ ...line, marks })) : [];
  });
  const [starts, ends] = [Map.groupBy(marked, ({ start }) => start), Map.groupBy(marked, ({ end }) => end)];
  const cuts = [...new Set([...starts.keys(), ...ends.keys(), text.length])].toSorted((a, b) => a - b);
  let out = "";
  for (const [i, at] of cuts.entries()) {
    out += escape(text.slice(cuts[i - 1] ?? 0, at));
    const ended = (ends.get(at) ?? []).toReversed(); // the inner ones first
    const begun = starts.get(at) ?? [];
    const isBesideWord =
      (begun.length > 0 && WORD.test(text[at - 1] ?? "")) || (ended.length > 0 && WORD.test(text[at] ?? ""));
    out += ended.map(({ marks }) => marks[1]).join("");
    if (isBesideWord) out += NO_SPACE;
    out += begun.map(({ marks }) => marks[0]).join("");
  }
  return out;
}

/** The lines of a span, without the blanks and signs of quotes around them. */
function linesOf(text: string, span: Span): Pick<Span, "start" | "end">[] {
  if (span.style === "pre") return [span];
  return [...text.slice(span.start, span.end).matchAll(/[^\s>](?:[^\n]*\S)?/g)].map(({ index, 0: line }) => {
    return { start: span.start + index, end: span.start + index + line.length };
  });
}

/** Marks that Slack and WhatsApp share. */
export const CHAT_MARKS: Readonly<Partial<Record<Style, readonly [string, string]>>> = {
  bold: ["*", "*"],
  italic: ["_", "_"],
  strike: ["~", "~"],
  code: ["`", "`"],
  pre: ["```\n", "\n```"],
};
