/** The text of an HTML mail, as a person would read it out: without styles, images and the addresses behind links. */
import { convert } from "html-to-text";

/** A long newsletter has a tenth of it; converting this much takes a quarter of a second at worst. */
const HTML_CHARS_MAX = 256 * 1024;
/** Longer URLs are dropped: nearly all of them are tracking links. */
const LINK_CHARS_MAX = 120;

export function htmlText(html: string): string {
  if (html === "") return "";
  return convert(html.slice(0, HTML_CHARS_MAX), {
    wordwrap: false,
    limits: { maxInputLength: HTML_CHARS_MAX, maxDepth: 64, maxChildNodes: 5000, ellipsis: "…" },
    selectors: [
      { selector: "img", format: "skip" },
      {
        selector: "a",
        options: {
          hideLinkHrefIfSameAsText: true,
          noAnchorUrl: true,
          pathRewrite: (path: string) => (/^https?:/i.test(path) && path.length <= LINK_CHARS_MAX ? path : ""),
        },
      },
      ...["h1", "h2", "h3", "h4", "h5", "h6"].map((selector) => ({ selector, options: { uppercase: false } })),
      // tables of mails are for looks: rows as lines, cells side by side
      { selector: "tr", format: "block", options: { leadingLineBreaks: 1, trailingLineBreaks: 1 } },
      ...["td", "th"].map((selector) => ({ selector, format: "inlineSurround", options: { suffix: " " } })),
    ],
  });
}
