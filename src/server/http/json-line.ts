/**
 * A value as JSON that is one line to every reader: Python's `splitlines`, by which httpx and requests read streams,
 * ends lines at characters that JSON may have in a text.
 */
export const jsonLine = (value: object): string => JSON.stringify(value).replace(BREAKS, escaped);

const BREAKS = /[\u0085\u2028\u2029]/g;

const escaped = (char: string): string => `\\u${char.charCodeAt(0).toString(16).padStart(4, "0")}`;
