/** Standard input of `hearth run`. */
import { describe, expect, test } from "bun:test";
import { readPiped } from "../../../src/cli/run/piped.ts";

const bytes = (latin1: string): Uint8Array => Buffer.from(latin1, "latin1");
const read = (input: Uint8Array, takes = { image: true, recording: true }) => readPiped(input, { model: "m", takes });

describe("standard input is", () => {
  test("text, also in UTF-16 with a byte order mark", () => {
    expect(read(Buffer.from("ünï\r\n")).text).toBe("ünï");
    expect(read(Buffer.from("\ufeffünï\n", "utf16le")).text).toBe("ünï");
    expect(read(Buffer.from("\ufeffünï\n", "utf16le").swap16()).text).toBe("ünï");
    expect(read(new Uint8Array())).toEqual({ text: "", images: [] });
  });

  test.each([
    "\x89PNG\r\n",
    "\xff\xd8\xff\xe0",
    "GIF89a",
    "RIFF1234WEBPVP8 ",
    "RIFF1234WAVEfmt ",
    "fLaC",
    "OggS",
    "\x1aE\xdf\xa3",
    "ID3\x04",
    "\xff\xf1\x50\x80",
    "\0\0\0\x1cftypM4A ",
  ])("a file for a model that takes it: %j", (start) => {
    const file = bytes(`${start}\0more`);
    expect(read(file)).toEqual({ text: "", images: [Buffer.from(file).toString("base64")] });
  });

  test("refused if the model takes no such file, or if it is neither text nor such a file", () => {
    const none = { image: false, recording: false };
    expect(() => read(bytes("\x89PNG"), none)).toThrow("got an image: 'm' cannot see images");
    expect(() => read(bytes("OggS"), none)).toThrow("got a recording: 'm' cannot hear recordings");
    expect(() => read(bytes("\0\0\0\x18ftypheic"))).toThrow("standard input: expected text, got other bytes");
    expect(() => read(bytes("PK\x03\x04\0"))).toThrow("standard input: expected text, got other bytes");
  });
});
