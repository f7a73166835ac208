/**
 * Markdown blocks as elements. No text becomes markup: HTML and pictures are shown as source, but for line breaks and a
 * few tags without attributes, and only web and mail addresses become links.
 */
import type { Token, Tokens } from "marked";
import { Component, createElement, type ComponentChildren } from "preact";
import { useWords } from "../context.ts";
import { CodeBlock } from "./code.tsx";
import { Formula } from "./formula.tsx";
import type { MathToken } from "./math.ts";

/** Deeper nesting is shown as source. */
const DEPTH_MAX = 24;

/** One block; a finished block is rendered once. */
export class Block extends Component<{ token: Token; isOver: boolean }> {
  override shouldComponentUpdate(next: { token: Token; isOver: boolean }): boolean {
    return next.token !== this.props.token || next.isOver !== this.props.isOver;
  }

  override render() {
    return blockOf(this.props.token, { depth: 0, isOver: this.props.isOver });
  }
}

interface At {
  readonly depth: number;
  readonly isOver: boolean;
}

function blockOf(token: Token, at: At): ComponentChildren {
  if (at.depth > DEPTH_MAX) return token.raw;
  const inside = { ...at, depth: at.depth + 1 };
  switch (token.type) {
    case "space":
      return null;
    case "def":
      return <p>{definitionOf(token as Tokens.Def)}</p>;
    case "heading":
      return headingOf(token as Tokens.Heading, inside);
    case "paragraph":
      return <p>{inlineOf((token as Tokens.Paragraph).tokens, inside)}</p>;
    case "text": {
      const { tokens, text } = token as Tokens.Text;
      return tokens ? inlineOf(tokens, inside) : decode(text);
    }
    case "code": {
      const { text, lang } = token as Tokens.Code;
      return <CodeBlock code={text} language={languageOf(lang)} isOver={at.isOver} />;
    }
    case "blockquote":
      return <blockquote dir="auto">{blocksOf((token as Tokens.Blockquote).tokens, inside)}</blockquote>;
    case "list":
      return listOf(token as Tokens.List, inside);
    case "table":
      return tableOf(token as Tokens.Table, inside);
    case "checkbox":
      return boxOf(token);
    case "hr":
      return <hr />;
    case "math":
      return <p>{formulaOf(token as MathToken, inside)}</p>;
    case "html":
      return BREAKS.test(token.raw) ? null : <p class="raw">{token.raw.trimEnd()}</p>;
    default:
      return <p class="raw">{token.raw}</p>;
  }
}

const blocksOf = (tokens: readonly Token[], at: At): ComponentChildren => tokens.map((token) => blockOf(token, at));

const languageOf = (lang: string | undefined): string => /^[\w+#.-]{1,30}/.exec(lang ?? "")?.[0].toLowerCase() ?? "";

/** Levels below the headings of the page itself. */
function headingOf({ depth, tokens }: Tokens.Heading, at: At) {
  const children = inlineOf(tokens, at);
  if (depth === 1) return <h3 class="h1">{children}</h3>;
  if (depth === 2) return <h4 class="h2">{children}</h4>;
  return depth === 3 ? <h5 class="h3">{children}</h5> : <h6>{children}</h6>;
}

function listOf({ ordered, start, items }: Tokens.List, at: At) {
  const children = items.map((item) => <li class={item.task ? "task" : undefined}>{blocksOf(item.tokens, at)}</li>);
  if (!ordered) return <ul dir="auto">{children}</ul>;
  return (
    <ol dir="auto" start={start === "" ? 1 : start}>
      {children}
    </ol>
  );
}

/** A checkbox as a character: it cannot be ticked here. */
const boxOf = (token: Token): string => ((token as Tokens.Checkbox).checked ? "☑ " : "☐ ");

function tableOf({ header, rows, align }: Tokens.Table, at: At) {
  const cell = ({ tokens }: Tokens.TableCell, column: number) => ({
    class: align[column] ? `align-${align[column]}` : undefined,
    children: inlineOf(tokens, at),
  });
  return (
    <TableBox>
      <table dir="auto">
        <thead>
          <tr>
            {header.map((each, column) => (
              <th scope="col" {...cell(each, column)} />
            ))}
          </tr>
        </thead>
        <tbody>
          {rows.map((row) => (
            <tr>
              {row.map((each, column) => (
                <td {...cell(each, column)} />
              ))}
            </tr>
          ))}
        </tbody>
      </table>
    </TableBox>
  );
}

/** Scrolls a wide table, also by keyboard. */
const TableBox = ({ children }: { children?: ComponentChildren }) => (
  <div class="table" tabIndex={0} role="region" aria-label={useWords().markdown.table}>
    {children}
  </div>
);

/** A line of `<br>` between paragraphs, which are apart already. */
const BREAKS = /^\s*(?:<br ?\/?>\s*)+$/i;
/** Tags that models write for lack of Markdown of their own. With an attribute they stay source. */
const TAG = /^<(sub|sup|kbd|u|mark|b|i|s)>$/i;
/** The end of a tag is searched in this many pieces: a text of nothing but tags must not take seconds. */
const TAG_TOKENS_MAX = 100;

function inlineOf(tokens: readonly Token[] | undefined, at: At): ComponentChildren {
  const children: ComponentChildren[] = [];
  for (let i = 0; i < (tokens?.length ?? 0); i++) {
    const token = tokens![i]!;
    const name = token.type === "html" ? TAG.exec(token.raw)?.[1]?.toLowerCase() : undefined;
    const isEnd = (other: Token): boolean => other.raw.toLowerCase() === `</${name}>`;
    const length = name === undefined ? -1 : tokens!.slice(i + 1, i + TAG_TOKENS_MAX).findIndex(isEnd);
    if (name === undefined || length < 0 || at.depth > DEPTH_MAX) children.push(inline(token, at));
    else {
      const inside = tokens!.slice(i + 1, i + 1 + length);
      children.push(createElement(name, null, inlineOf(inside, { ...at, depth: at.depth + 1 })));
      i += length + 1;
    }
  }
  return children;
}

function inline(token: Token, at: At): ComponentChildren {
  if (at.depth > DEPTH_MAX) return token.raw;
  const inside = { ...at, depth: at.depth + 1 };
  switch (token.type) {
    case "strong":
      return <strong>{inlineOf(token.tokens, inside)}</strong>;
    case "em":
      return <em>{inlineOf(token.tokens, inside)}</em>;
    case "del":
      return <del>{inlineOf(token.tokens, inside)}</del>;
    case "codespan":
      return <code>{(token as Tokens.Codespan).text}</code>;
    case "br":
      return <br />;
    case "link":
      return linkOf(token as Tokens.Link, inside);
    case "image": // never fetched: its sender would learn that it is read
      return toAddress((token as Tokens.Image).href, token.raw);
    case "html":
      return BREAKS.test(token.raw) ? <br /> : token.raw;
    case "text":
      return token.tokens ? inlineOf(token.tokens, inside) : decode((token as Tokens.Text).text);
    case "escape":
      return (token as Tokens.Escape).text;
    case "checkbox":
      return boxOf(token);
    case "math":
      return formulaOf(token as MathToken, inside);
    default:
      return isBlock(token) ? blockOf(token, inside) : token.raw;
  }
}

/** An unfinished formula is shown as source while the answer grows, and as text at its end. */
function formulaOf({ raw, text, isDisplay, isWhole }: MathToken, { isOver }: At) {
  if (isWhole) return <Formula {...{ raw, text, isDisplay }} />;
  return isOver ? raw : <code class="tex display">{raw.trim()}</code>;
}

const BLOCKS: ReadonlySet<string> = new Set(["paragraph", "list", "code", "blockquote", "heading", "table", "space"]);

const isBlock = ({ type }: Token): boolean => BLOCKS.has(type);

const linkOf = ({ href, tokens, raw }: Tokens.Link, at: At): ComponentChildren =>
  toAddress(href, raw, () => inlineOf(tokens, at));

/** The target of `[name]` elsewhere: lists of sources have this form, and nothing else may refer to them. */
const definitionOf = ({ raw, href }: Tokens.Def): ComponentChildren => {
  const source = raw.trim();
  const at = source.indexOf(href);
  if (at < 0) return source;
  return [source.slice(0, at), toAddress(href, href), source.slice(at + href.length)];
};

/** A link if the address is allowed; else the source. */
function toAddress(href: string, source: string, children = (): ComponentChildren => source): ComponentChildren {
  const address = safeAddress(decode(href));
  if (address === undefined) return source;
  return (
    <a href={address} target="_blank" rel="noopener noreferrer nofollow" title={address}>
      {children()}
    </a>
  );
}

/** The URL of a link if its scheme is allowed; else undefined. */
export function safeAddress(href: string): string | undefined {
  try {
    const { protocol, href: whole } = new URL(href);
    return ["http:", "https:", "mailto:"].includes(protocol) ? whole : undefined;
  } catch {
    return undefined;
  }
}

const ENTITIES: Readonly<Record<string, string>> = { amp: "&", lt: "<", gt: ">", quot: '"', nbsp: "\u00a0" };

/** Decodes the few character references that models write. */
const decode = (text: string): string =>
  text.replace(
    /&(?:(amp|lt|gt|quot|nbsp)|#(\d{1,7}));/g,
    (whole, name: string | undefined, code: string | undefined) => {
      if (name !== undefined) return ENTITIES[name] ?? whole;
      const point = Number(code);
      return point > 0 && point <= 0x10_ff_ff && !(point >= 0xd8_00 && point <= 0xdf_ff)
        ? String.fromCodePoint(point)
        : whole;
    },
  );
