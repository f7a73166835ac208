/** Image paths in prompts: the found paths, and the remaining text. */
import { mkdirSync, mkdtempSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { afterAll, describe, expect, test } from "bun:test";
import { beginsWithImage, readImages, readImageWords, warnOfImages } from "../../../src/cli/run/image-paths.ts";

const folder = mkdtempSync(join(tmpdir(), "hearth-images-"));
afterAll(() => rmSync(folder, { recursive: true, force: true }));
const put = (name: string): string => {
  writeFileSync(join(folder, name), name);
  return join(folder, name);
};
const plain = put("photo.jpg");
const spaced = put("my photo (1).PNG");
const quoted = put("it.webp");
mkdirSync(join(folder, "folder.png"));

const notes: string[] = [];
const terminal = { note: (line: string) => void notes.push(line) };
const see = async (text: string) => {
  const { text: left, images } = await readImages(text, { image: true, recording: false }, terminal);
  return [left, ...images.map(atob)];
};

describe("a path in a prompt", () => {
  test("becomes an image and is removed from the text", async () => {
    expect(await see(`what is this ${plain}`)).toEqual(["what is this", "photo.jpg"]);
    expect(await see(`${plain} or ${quoted}?`)).toEqual(["or ?", "photo.jpg", "it.webp"]);
    expect(await see(`one\ntwo ${plain}\nthree`)).toEqual(["one\ntwo \nthree", "photo.jpg"]);
    expect(notes).toContain(`Added image '${plain}'`);
  });

  test("may be quoted, or escaped as terminals do", async () => {
    const escaped = spaced.replace(/[ ()]/g, "\\$&");
    for (const path of [`'${spaced}'`, `"${spaced}"`, escaped]) {
      expect(await see(`compare ${path} please`)).toEqual(["compare please", "my photo (1).PNG"]);
    }
  });

  test.each(["\u202f", "\xa0"])("may have a no-break space, as screenshots of macOS do: %j", async (space) => {
    const path = join(folder, `Screenshot 2026-11-28 at 3.14.15${space}PM.png`);
    writeFileSync(path, "shot");
    expect(await see(`what is ${path.replaceAll(" ", "\\ ")} about`)).toEqual(["what is about", "shot"]);
  });

  test("stays text if it is missing, a folder, or not an image", async () => {
    const missing = `look at ${join(folder, "none.png")}  and ${folder}/folder.png, /etc/hosts, "x.png" and http://a/b.png`;
    expect(await see(missing)).toEqual([missing]);
    expect(await see("a sentence about .png, 1/2.png")).toEqual(["a sentence about .png, 1/2.png"]);
  });

  test("may have the form of Windows", () => {
    const paths = [
      String.raw`C:\x.png`,
      "C:/x.png",
      String.raw`~\x.png`,
      String.raw`.\x.png`,
      String.raw`"C:\x y.png"`,
    ];
    expect(paths.filter((path) => !beginsWithImage(`${path} what`))).toEqual([]);
  });

  test("is not a command at the beginning of a line", () => {
    expect(["/tmp/x.png what", "'/tmp/x y.png'", "/bye", "/show x.png"].map(beginsWithImage)).toEqual([
      true,
      true,
      false,
      false,
    ]);
  });
});

test("an argument of the command line that is a path is one path, with its blanks", async () => {
  const { text, images } = await readImageWords(
    ["what is", "this", spaced, `or ${plain}`, "x.png"],
    { image: true, recording: false },
    terminal,
  );
  expect([text, images.map(atob)]).toEqual(["what is this or x.png", ["my photo (1).PNG", "photo.jpg"]]);
});

test("a text of 250,000 characters that resembles a path is read quickly", async () => {
  const text = `/${"\\ a/".repeat(50_000)} ./${".jpg".repeat(50_000)}x`;
  expect(await see(text)).toEqual([text]);
});

test("a recording is sent only to a model with audio", async () => {
  const said = put("said.wav");
  expect(await see(`who says ${said}, and on ${plain}?`)).toEqual([`who says ${said}, and on ?`, "photo.jpg"]);
  const hears = await readImages(`who says ${said}, and on ${plain}?`, { image: false, recording: true }, terminal);
  expect([hears.text, ...hears.images.map(atob)]).toEqual([`who says , and on ${plain}?`, "said.wav"]);
  expect(notes).toContain(`Added recording '${said}'`);
  const browser = await readImages(put("said.webm"), { image: false, recording: true }, terminal);
  expect(browser.images.map(atob)).toEqual(["said.webm"]);
  const phone = await readImages(put("said.m4a"), { image: false, recording: true }, terminal);
  expect(phone.images.map(atob)).toEqual(["said.m4a"]);
});

test("a model without vision gets a warning for each existing image, and for no other text", async () => {
  const warned = async (...words: string[]): Promise<string[]> => {
    const before = notes.length;
    await warnOfImages(words, { model: "m", takes: { image: false, recording: true } }, terminal);
    return notes.slice(before);
  };
  expect(await warned(`what is ${plain}?`)).toEqual([`Warning: 'm' cannot see images: it gets '${plain}' as text`]);
  expect(await warned("compare", spaced, quoted)).toEqual([
    `Warning: 'm' cannot see images: it gets '${spaced}', '${quoted}' as text`,
  ]);
  expect(await warned("./none.png", "what is a photo.jpg?", join(folder, "folder.png"))).toEqual([]);
});

test("a model with vision gets a warning for a path that does not exist, and for no prose", async () => {
  const warned = async (...words: string[]): Promise<string[]> => {
    const before = notes.length;
    await warnOfImages(words, { model: "m", takes: { image: true, recording: false } }, terminal);
    return notes.slice(before);
  };
  const none = join(folder, "none.png");
  expect(await warned("what is", "phto.jpg")).toEqual(["Warning: there is no file 'phto.jpg': 'm' gets it as text"]);
  expect(await warned(`what is ${none}?`)).toEqual([`Warning: there is no file '${none}': 'm' gets it as text`]);
  expect(await warned("./1.png ./2.png ./3.png ./4.png ./5.png ./6.png")).toEqual([
    "Warning: there is no file './1.png', './2.png', './3.png', './4.png', './5.png', …: 'm' gets it as text",
  ]);
  expect(await warned(plain, "how do I make a.png", 'it says "x.png"', "./said.wav")).toEqual([]);
});
