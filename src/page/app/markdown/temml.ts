/**
 * LaTeX as a MathML tree, fetched when a formula is shown. Elements and attributes come from an allow-list without
 * URLs, ids and foreign classes.
 */
import temml from "temml";

/** A piece of a formula: text, or an element. */
export type MathPiece =
  | string
  | {
      readonly type: string;
      readonly attributes: Readonly<Record<string, string>>;
      readonly style: Readonly<Record<string, string>>;
      readonly children: readonly MathPiece[];
    };

/** Returns undefined for invalid LaTeX, and for formulas that are too large. */
export type DrawMath = (tex: string, isDisplay: boolean) => MathPiece | undefined;

const CHARS_MAX = 5000;
/** Macros can expand a short text to a long one. */
const WITH_MACROS_CHARS_MAX = 400;
const EXPANSIONS_MAX = 200;
const PIECES_MAX = 20_000;
const DEPTH_MAX = 100;
const MACROS = /\\(?:[gex]?def|(?:future)?let|(?:re|provide)?newcommand|providecommand|global|long)(?![a-zA-Z])/;

const ELEMENTS: ReadonlySet<string> = new Set(
  (
    "math semantics mrow mi mn mo mtext ms mspace mfrac msqrt mroot mstyle merror mpadded mphantom menclose msub msup " +
    "msubsup munder mover munderover mmultiscripts mprescripts none mtable mtr mtd"
  ).split(" "),
);
const ATTRIBUTES: ReadonlySet<string> = new Set(
  (
    "accent accentunder columnalign depth display displaystyle fence form height largeop linethickness lspace mathcolor " +
    "mathbackground mathsize mathvariant maxsize minsize movablelimits notation rowspacing rspace scriptlevel separator " +
    "stretchy symmetric voffset width"
  ).split(" "),
);
const STYLES: ReadonlySet<string> = new Set(
  (
    "border borderBottom borderLeft borderRight borderTop color fontWeight marginLeft mathDepth padding paddingBottom " +
    "paddingLeft paddingRight paddingTop textAlign"
  ).split(" "),
);

export const drawMath: DrawMath = (tex, isDisplay) => {
  if (tex.length > (MACROS.test(tex) ? WITH_MACROS_CHARS_MAX : CHARS_MAX) || isDeep(tex)) return undefined;
  try {
    const tree: unknown = temml.__renderToMathMLTree(tex, {
      displayMode: isDisplay,
      throwOnError: true,
      strict: false,
      trust: false,
      maxExpand: EXPANSIONS_MAX,
      maxSize: [20, 20],
    });
    return pieceOf(tree, { left: PIECES_MAX });
  } catch {
    return undefined; // shown as source
  }
};

function isDeep(tex: string): boolean {
  let depth = 0;
  for (const each of tex) {
    if (each === "{") depth++;
    else if (each === "}") depth--;
    if (depth > DEPTH_MAX) return true;
  }
  return false;
}

interface Node {
  readonly type?: string;
  readonly text?: string;
  readonly attributes?: Readonly<Record<string, unknown>>;
  readonly style?: Readonly<Record<string, unknown>>;
  readonly children?: readonly unknown[];
}

/** Elements outside the allow-list are replaced by their children. */
function pieceOf(node: unknown, room: { left: number }): MathPiece {
  if (--room.left < 0) throw new Error("too many pieces");
  const { type = "", text, attributes = {}, style = {}, children = [] } = node as Node;
  if (text !== undefined) return text;
  return {
    type: ELEMENTS.has(type) ? type : "mrow",
    attributes: known(attributes, ATTRIBUTES),
    style: known(style, STYLES),
    children: children.map((child) => pieceOf(child, room)),
  };
}

/** No allowed attribute or style holds a URL. */
const known = (fields: Readonly<Record<string, unknown>>, names: ReadonlySet<string>): Record<string, string> =>
  Object.fromEntries(
    Object.entries(fields)
      .map(([name, value]) => [name === "math-depth" ? "mathDepth" : name, String(value)] as const)
      .filter(([name, value]) => names.has(name) && /^[\w\s#.,%+()-]{0,80}$/.test(value) && !/url|var\(/i.test(value)),
  );
