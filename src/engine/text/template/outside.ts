/**
 * Renders prompts so that control tokens in messages from outside stay text, even if a template changes the messages,
 * while control tokens of the template become tokens, and images keep their position in a message.
 *
 * Each such text and each image is replaced by a placeholder while the template is rendered: noncharacters that encode
 * a number. Templates may trim, cut and join freely: the rest of a cut placeholder is another placeholder or nothing,
 * never a control token. Noncharacters in the messages are replaced too, so that a message cannot contain a
 * placeholder. All other text is unchanged, so a template's conditions on it still hold.
 */
import { AppError } from "../../../base/index.ts";
import type { TextSegment } from "../tokenizer/tokenizer.ts";
import type { PromptMessage, PromptToolCall } from "./messages.ts";

/** From `start` up to `end`, in UTF-16 units. */
export interface Range {
  readonly start: number;
  readonly end: number;
}

/** A part of a rendered prompt: a text, or an image of a message. */
export type RenderedPart = TextSegment | { readonly image: unknown };

/** U+FDD0 … U+FDEF are permanently unassigned: 31 digits, and an end mark. */
const DIGIT_0 = 0xfdd0;
const BASE = 31;
const LAST = String.fromCharCode(DIGIT_0 + BASE);
const NONCHARACTERS = /[\ufdd0-\ufdef]/g;
const PLACEHOLDERS = /([\ufdd0-\ufdee]*)\ufdef|[\ufdd0-\ufdee]+/g;

interface Outside {
  readonly messages: readonly PromptMessage[];
  /** Ranges of control tokens in a text, including a possible beginning of one at its end. */
  readonly findControl: (text: string) => readonly Range[];
  readonly render: (messages: readonly PromptMessage[]) => string;
}

/**
 * The prompt of a conversation, divided at its images and at texts in which control tokens are not recognised. Throws
 * `bad_request` if the template omits an image.
 */
export function renderWithOutside({ messages, findControl, render }: Outside): RenderedPart[] {
  const images = messages.flatMap((message) => message.images ?? []);
  if (images.length === 0 && !messages.some(({ isOutside }) => isOutside)) {
    return [{ text: render(messages), control: true }];
  }
  const hidden: RenderedPart[] = [];
  const numbers = new Map<string, number>();
  const hide = (text: string): string => {
    const number = numbers.get(text) ?? hidden.push({ text, control: false }) - 1;
    numbers.set(text, number);
    return placeholder(number);
  };
  const noncharacters = (text: string): string => text.replace(NONCHARACTERS, hide);
  const all = (text: string): string => {
    let safe = "";
    let at = 0;
    for (const { start, end } of joined(findControl(text))) {
      safe += noncharacters(text.slice(at, start)) + hide(text.slice(start, end));
      at = end;
    }
    return safe + noncharacters(text.slice(at));
  };
  const guarded = messages.map((message) => {
    const guard = message.isOutside ? all : noncharacters;
    const hideImage = (image: unknown): string => placeholder(hidden.push({ image }) - 1);
    return { ...withTexts(message, guard), content: contentOf(message, { guard, hideImage }) };
  });
  const parts = reveal(render(guarded), hidden);
  for (const [i, image] of images.entries()) checkShown(parts, { image, number: i + 1 });
  return parts;
}

/** The content of a message, with its images in place. */
function contentOf(
  { content, images = [], imagesAt = [] }: PromptMessage,
  { guard, hideImage }: { guard: (text: string) => string; hideImage: (image: unknown) => string },
): string {
  let safe = "";
  let at = 0;
  for (const [i, image] of images.entries()) {
    const place = imagesAt[i] ?? at;
    safe += guard(content.slice(at, place)) + hideImage(image);
    at = place;
  }
  return safe + guard(content.slice(at));
}

function checkShown(parts: readonly RenderedPart[], { image, number }: { image: unknown; number: number }): void {
  if (parts.some((part) => "image" in part && part.image === image)) return;
  throw new AppError("bad_request", `image ${number}: the model's template leaves it out of the prompt`);
}

const placeholder = (number: number): string =>
  Array.from(number.toString(BASE), (digit) => String.fromCharCode(DIGIT_0 + parseInt(digit, BASE))).join("") + LAST;

/** A rendered text, divided at its placeholders. Remains of a cut placeholder are dropped. */
function reveal(text: string, hidden: readonly RenderedPart[]): RenderedPart[] {
  const parts: RenderedPart[] = [];
  let at = 0;
  for (const { 0: found, 1: digits = "", index } of text.matchAll(PLACEHOLDERS)) {
    parts.push({ text: text.slice(at, index), control: true });
    const number = Array.from(digits).reduce((sum, digit) => sum * BASE + digit.charCodeAt(0) - DIGIT_0, 0);
    const shown = digits === "" || !found.endsWith(LAST) ? undefined : hidden[number];
    if (shown) parts.push(shown);
    at = index + found.length;
  }
  parts.push({ text: text.slice(at), control: true });
  return parts.filter((part) => "image" in part || part.text !== "");
}

function joined(ranges: readonly Range[]): Range[] {
  const joint: Range[] = [];
  for (const range of ranges.toSorted((a, b) => a.start - b.start)) {
    const last = joint.at(-1);
    if (last && range.start < last.end) {
      joint[joint.length - 1] = { start: last.start, end: Math.max(last.end, range.end) };
    } else joint.push(range);
  }
  return joint;
}

/** A message with all its texts changed. */
function withTexts(message: PromptMessage, change: (text: string) => string): PromptMessage {
  const { content, thinking, tool_name: tool, tool_calls: calls } = message;
  return {
    ...message,
    content: change(content),
    ...(thinking === undefined ? {} : { thinking: change(thinking) }),
    ...(tool === undefined ? {} : { tool_name: change(tool) }),
    ...(calls === undefined ? {} : { tool_calls: calls.map((call) => withCallTexts(call, change)) }),
  };
}

function withCallTexts(call: PromptToolCall, change: (text: string) => string): PromptToolCall {
  const { name, arguments: given } = call.function;
  const changed = mapTexts(given, change) as Record<string, unknown>; // an object remains an object
  return { ...call, function: { ...call.function, name: change(name), arguments: changed } };
}

/** A JSON value with all its texts changed, including keys. */
function mapTexts(value: unknown, change: (text: string) => string): unknown {
  if (typeof value === "string") return change(value);
  if (Array.isArray(value)) return value.map((each) => mapTexts(each, change));
  if (typeof value !== "object" || value === null) return value;
  return Object.fromEntries(Object.entries(value).map(([key, each]) => [change(key), mapTexts(each, change)]));
}
