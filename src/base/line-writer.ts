/**
 * Writes lines to a stream whose other end may be full, slow or gone: a log's disk, an unread pipe. A line that cannot
 * be written is dropped and counted. It never throws or waits, and its memory is limited.
 */

/** The part of `process.stderr` that is used here. */
interface LineStream {
  write(text: string, done: (error?: Error | null) => void): unknown;
  on(event: "error", handle: () => void): unknown;
}

/** Characters that may wait for a slow reader. */
const WAITING_CHARS_MAX = 2 ** 20;

/**
 * Takes whole lines with their newlines.
 * @param lostLine makes the line that reports how many were dropped; written as soon as writing works again
 */
export function makeLineWriter(stream: LineStream, lostLine: (count: number) => string): (line: string) => void {
  let [waiting, lost] = [0, 0];
  let isCut = false;
  stream.on("error", () => {}); // an unhandled `error` ends the process; the callback of each write gets it too
  const send = (line: string, lines: number): void => {
    const text = isCut ? `\n${line}` : line; // a full disk may have cut the last line
    isCut = false;
    waiting += text.length;
    stream.write(text, (error) => {
      waiting -= text.length;
      if (error) {
        isCut = true;
        lost += lines;
      } else if (lost > 0 && waiting < WAITING_CHARS_MAX / 2) {
        const count = lost;
        lost = 0;
        send(lostLine(count), count);
      }
    });
  };
  return (line) => {
    if (waiting + line.length > WAITING_CHARS_MAX) lost++;
    else send(line, 1);
  };
}
