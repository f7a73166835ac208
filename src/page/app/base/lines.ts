/** The lines of a stream, as they arrive. */

/** Longest line; a longer one throws. */
const LINE_CHARS_MAX = 64 * 1024 * 1024;

export async function* linesOf(stream: ReadableStream<Uint8Array>): AsyncGenerator<string, void, void> {
  const decoder = new TextDecoder();
  const reader = stream.getReader();
  let rest = "";
  try {
    for (;;) {
      const { done, value } = await reader.read();
      if (done) break;
      const parts = (rest + decoder.decode(value, { stream: true })).split("\n");
      rest = parts.pop() ?? "";
      if (rest.length > LINE_CHARS_MAX) throw new Error("the server sent a line that is too long");
      for (const part of parts) if (part.trim() !== "") yield part;
    }
    if (rest.trim() !== "") yield rest;
  } finally {
    await reader.cancel().catch(() => {}); // it may have failed already
  }
}
