/** The text of an HTML mail that a reader sees: without styles, images, link targets, and hidden text. */
import { convert, type FormatCallback } from "html-to-text";
import { keepVisible } from "./visible.ts";

/** A long newsletter has a tenth of this; converting this much takes a quarter of a second at worst. */
const HTML_CHARS_MAX = 256 * 1024;
/** Longer URLs are dropped: nearly all are tracking links. */
const LINK_CHARS_MAX = 120;

/** The root element, at which hidden text is removed before any output. */
const WHOLE = "whole-mail";
const visible: FormatCallback = (whole, walk, builder) => {
  keepVisible(whole);
  walk(whole.children, builder);
};

export function htmlText(html: string): string {
  if (html === "") return "";
  const bare = html.slice(0, HTML_CHARS_MAX).replace(new RegExp(`</${WHOLE}`, "gi"), "</unknown");
  return convert(`<${WHOLE}>${bare}`, {
    wordwrap: false,
    baseElements: { selectors: [WHOLE] },
    formatters: { visible },
    limits: { maxInputLength: 2 * HTML_CHARS_MAX, maxDepth: 64, maxChildNodes: 5000, ellipsis: "…" },
    selectors: [
      { selector: WHOLE, format: "visible" },
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
      // tables of mails are layout: rows become lines, cells go side by side
      { selector: "tr", format: "block", options: { leadingLineBreaks: 1, trailingLineBreaks: 1 } },
      ...["td", "th"].map((selector) => ({ selector, format: "inlineSurround", options: { suffix: " " } })),
    ],
  });
}
