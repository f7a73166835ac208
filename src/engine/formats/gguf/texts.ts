/**
 * A list of texts, kept as the bytes in a file: for long lists of which few items are read, such as 280,000 merges,
 * which would take 30 MB as strings.
 */

export interface Texts {
  readonly length: number;
  /** UTF-8; bytes between the texts have no meaning. */
  readonly bytes: Uint8Array;
  /** (length) start and end of each. */
  readonly starts: Uint32Array;
  readonly ends: Uint32Array;
}

/** Builds a list of texts in sequence. */
export interface TextsMaker {
  /** Copies bytes that hold texts; returns their start. */
  append(bytes: Uint8Array): number;
  /** @param start relative to the results of `append` */
  add(start: number, end: number): void;
  finish(): Texts;
}

/** @param count final number of texts, checked by the caller */
export function makeTexts(count: number): TextsMaker {
  const [starts, ends] = [new Uint32Array(count), new Uint32Array(count)];
  let [bytes, used, length] = [new Uint8Array(16 * count), 0, 0];
  return {
    append(more) {
      if (used + more.length > bytes.length) {
        const wider = new Uint8Array(Math.max(2 * bytes.length, used + more.length));
        wider.set(bytes.subarray(0, used));
        bytes = wider;
      }
      bytes.set(more, used);
      used += more.length;
      return used - more.length;
    },
    add(start, end) {
      starts[length] = start;
      ends[length++] = end;
    },
    finish: () => ({ length, bytes: bytes.slice(0, used), starts, ends }),
  };
}

/** The list from strings. */
export function textsOf(strings: readonly string[]): Texts {
  const texts = makeTexts(strings.length);
  const utf8 = new TextEncoder();
  for (const string of strings) {
    const bytes = utf8.encode(string);
    const start = texts.append(bytes);
    texts.add(start, start + bytes.length);
  }
  return texts.finish();
}

/** Reads one as a string. Invalid UTF-8 becomes U+FFFD. */
export function makeTextReader({ bytes, starts, ends }: Texts): (index: number) => string {
  const decoder = new TextDecoder("utf-8", { ignoreBOM: true });
  return (index) => decoder.decode(bytes.subarray(starts[index], ends[index]));
}
