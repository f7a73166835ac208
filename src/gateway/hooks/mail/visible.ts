/**
 * Removes invisible elements from the tree of an HTML mail: a stranger could hide orders for a model there. Evaluates
 * `hidden` and inline styles, which mails use; ignores style sheets.
 */
import type { DomNode } from "html-to-text";

interface Color {
  readonly channels: readonly number[];
}

/** Properties inherited from the elements around a text. */
interface Look {
  readonly isShown: boolean;
  readonly isTiny: boolean;
  /** Undefined: transparent, so the text is invisible. */
  readonly color: Color | undefined;
  /** Undefined: an image, or a colour that is not understood. */
  readonly background: Color | undefined;
}

const BLACK: Color = { channels: [0, 0, 0] };
const WHITE: Color = { channels: [255, 255, 255] };
const PAGE: Look = { isShown: true, isTiny: false, color: BLACK, background: WHITE };

/** Per channel, from 0 to 255: readers cannot see smaller differences. */
const CHANNEL_DIFFERENCE = 8;
/** Smaller text is unreadable. */
const FONT_PIXELS_MIN = 2;

/** Changes the tree. */
export function keepVisible(root: DomNode): void {
  const waiting: { node: DomNode; look: Look }[] = [{ node: root, look: PAGE }];
  for (let at = waiting.pop(); at; at = waiting.pop()) {
    const { node, look } = at;
    node.children = (node.children ?? []).filter((child) => child.type !== "tag" || isRendered(child));
    for (const child of node.children) {
      if (child.type === "text") child.data = isVisible(look) ? (child.data ?? "") : "";
      else if (child.type === "tag") waiting.push({ node: child, look: lookOf(child, look) });
    }
  }
}

const isVisible = ({ isShown, isTiny, color, background }: Look): boolean =>
  isShown && !isTiny && color !== undefined && (background === undefined || !isSame(color, background));

const isSame = (a: Color, b: Color): boolean =>
  a.channels.every((channel, i) => Math.abs(channel - (b.channels[i] ?? 0)) <= CHANNEL_DIFFERENCE);

type Style = ReadonlyMap<string, string>;

/** Lower-case and trimmed; of equal names the last counts. */
function styleOf({ attribs }: DomNode): Style {
  const given = attribs?.["style"];
  if (given === undefined) return new Map();
  const text = unescaped(given.replace(/\/\*.*?\*\//gs, "")).toLowerCase();
  const pairs = text.split(";").map((each: string): [string, string] => {
    const colon = each.indexOf(":");
    return [
      each.slice(0, colon).trim(),
      each
        .slice(colon + 1)
        .replace("!important", "")
        .trim(),
    ];
  });
  return new Map(pairs);
}

/** Decodes CSS escapes such as `\\6e`: up to six hexadecimal digits and one blank. */
const unescaped = (style: string): string =>
  style.replace(/\\(?:([0-9a-f]{1,6})\s?|([^\n0-9a-f]))/gi, (_, digits: string | undefined, letter: string) => {
    if (digits === undefined) return letter;
    const code = Number.parseInt(digits, 16);
    return code > 0 && code <= 0x10ffff ? String.fromCodePoint(code) : "\ufffd";
  });

/** Positioned off the page, left of it or above it. */
const isOffPage = (style: Style): boolean =>
  /^(absolute|fixed)$/.test(style.get("position") ?? "") &&
  ["left", "top"].some((key) => /^-\d{3,}/.test(style.get(key) ?? ""));

/** False for elements that no mail program shows, and for elements whose style hides their content. */
function isRendered(node: DomNode): boolean {
  if (node.name === "head" || node.name === "template" || node.name === "title") return false;
  const { attribs = {} } = node;
  if (Object.hasOwn(attribs, "hidden")) return false;
  const style = styleOf(node);
  if (style.size === 0) return true;
  if (style.get("display") === "none" || isZero(style.get("opacity"))) return false;
  if (isOffPage(style) || /^(inset\((100|[5-9]\d)%|circle\(0)/.test(style.get("clip-path") ?? "")) return false;
  if (/scale\(0[,)]/.test(style.get("transform") ?? "")) return false;
  const isClipped = /^(hidden|clip)/.test(style.get("overflow") ?? "") || style.has("clip");
  return !(isClipped && ["height", "max-height", "width", "max-width"].some((key) => isZero(style.get(key))));
}

/** `0`, `0.0px`, `0%`; one pixel counts too. */
const isZero = (value: string | undefined): boolean =>
  value !== undefined && /^(0*\.?0+|0?1px)(px|em|rem|pt|%)?$/.test(value);

function lookOf(node: DomNode, around: Look): Look {
  const style = styleOf(node);
  const { attribs = {} } = node;
  const visibility = style.get("visibility");
  const size = style.get("font-size");
  const color = style.get("color") ?? (node.name === "font" ? attribs["color"]?.toLowerCase() : undefined);
  const isIndented = /^-\d{3,}/.test(style.get("text-indent") ?? "");
  return {
    isShown: (visibility === undefined ? around.isShown : visibility === "visible") && !isIndented,
    isTiny: size === undefined ? around.isTiny : isTinySize(size, around),
    color: color === undefined ? around.color : textColorOf(color, around),
    background: backgroundOf(node, style, around),
  };
}

const textColorOf = (text: string, around: Look): Color | undefined =>
  /^(transparent|rgba\(.*[\s,/]0?\.?0+%?\s*\))$/.test(text) ? undefined : (colorOf(text) ?? around.color);

/** Relative sizes leave the text visible. */
function isTinySize(size: string, around: Look): boolean {
  const [, number, unit] = /^(\d*\.?\d+)(px|pt|em|rem|%)?$/.exec(size) ?? [];
  if (number === undefined) return around.isTiny && /^(inherit|smaller|larger)$/.test(size);
  const value = Number(number);
  if (value === 0) return true;
  if (unit === "px" || unit === "pt") return value < FONT_PIXELS_MIN;
  return unit === undefined || unit === "rem"
    ? value < 0.1
    : around.isTiny || (unit === "em" ? value < 0.1 : value < 10);
}

function backgroundOf({ attribs }: DomNode, style: Style, around: Look): Color | undefined {
  const image = style.get("background-image") ?? attribs?.["background"];
  if (image !== undefined && image !== "none") return undefined;
  const text = style.get("background-color") ?? style.get("background") ?? attribs?.["bgcolor"]?.toLowerCase();
  if (text === undefined || ["transparent", "none", "inherit"].includes(text)) return around.background;
  return colorOf(text);
}

const NAMES: Readonly<Record<string, Color>> = {
  black: BLACK,
  white: WHITE,
  red: { channels: [255, 0, 0] },
  yellow: { channels: [255, 255, 0] },
  blue: { channels: [0, 0, 255] },
  gray: { channels: [128, 128, 128] },
  silver: { channels: [192, 192, 192] },
  whitesmoke: { channels: [245, 245, 245] },
  snow: { channels: [255, 250, 250] },
  ivory: { channels: [255, 255, 240] },
};

/** Undefined if it is not a plain colour: a gradient, a picture, a rare name. */
function colorOf(text: string): Color | undefined {
  if (Object.hasOwn(NAMES, text)) return NAMES[text];
  const [, hex] = /^#?([0-9a-f]{3}|[0-9a-f]{6})$/.exec(text) ?? [];
  if (hex !== undefined) {
    const digits = hex.length === 3 ? [...hex].map((digit) => digit + digit).join("") : hex;
    return { channels: [0, 2, 4].map((i) => Number.parseInt(digits.slice(i, i + 2), 16)) };
  }
  const [, list] = /^rgba?\(([\d\s.,%/]+)\)$/.exec(text) ?? [];
  const parts = list?.split(/[\s,/]+/).filter((part) => part !== "") ?? [];
  const channels = parts.slice(0, 3).map(Number);
  return channels.length === 3 && channels.every((channel) => channel >= 0) ? { channels } : undefined;
}
