/**
 * Removes invisible characters from outside text: a model reads them, but a person does not see them. Keeps characters
 * that writing needs: one joiner, one variation selector, flags.
 */

const RUN = /[\p{Default_Ignorable_Code_Point}\ufff9-\ufffb]+/gu;

/** Tag sequences after a black flag, which spell the flags of England, Scotland and Wales. */
const FLAGS = ["gbeng", "gbsct", "gbwls"].map((code) =>
  String.fromCodePoint(...[...code].map((char) => 0xe0000 + char.charCodeAt(0)), 0xe007f),
);
const BLACK_FLAG = "\u{1f3f4}";

/** A variation selector: chooses the look of the character before it. */
const isSelector = (char: string): boolean => /^[\ufe00-\ufe0f]$/.test(char);
/** A variation selector of Chinese characters; names need them. */
const isHanSelector = (char: string): boolean => /^[\u{e0100}-\u{e01ef}]$/u.test(char);
/** Soft hyphens, joiners and non-joiners, fillers, direction marks. */
const isJoiner = (char: string): boolean =>
  /^(?:[\u00ad\u061c\u115f\u1160\u200b-\u200f]|\u034f|\u17b4|\u17b5|\u3164|\uffa0|\u180b|\u180c|\u180d|\u180f)$/.test(
    char,
  );

export const withoutInvisible = (text: string): string =>
  text.replace(RUN, (run, at: number) => {
    const before = text.slice(Math.max(0, at - 2), at);
    if (before === BLACK_FLAG && FLAGS.includes(run)) return run;
    const chars = [...run];
    const [first = ""] = chars;
    const isChosen = isSelector(first) || (isHanSelector(first) && /\p{Script=Han}$/u.test(before));
    return (isChosen ? first : "") + (chars.find(isJoiner) ?? "");
  });
