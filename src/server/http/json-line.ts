/**
 * A value as JSON on one line for every reader: Python's `splitlines`, which httpx and requests use to read streams,
 * breaks lines at characters that JSON strings may hold.
 */
export const jsonLine = (value: object): string => JSON.stringify(value).replace(BREAKS, escaped);

const BREAKS = /[\u0085\u2028\u2029]/g;

const escaped = (char: string): string => `\\u${char.charCodeAt(0).toString(16).padStart(4, "0")}`;
