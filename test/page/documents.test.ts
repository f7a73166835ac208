/** The text of documents: each kind, and hostile, damaged or protected ones. */
import { expect, test } from "bun:test";
import { TEXT_CHARS_MAX } from "../../src/page/app/work/document.ts";
import { readDocument } from "../../src/page/app/work/read-document.ts";
import { attributeOf, xmlPieces } from "../../src/page/app/work/xml.ts";
import { bomb, docx, odt, paragraph, pdf, pptx, xlsx } from "./documents.ts";

const read = (bytes: Uint8Array | string, name = "x") => readDocument(new Blob([bytes as BlobPart]), name, () => {});
const fault = (bytes: Uint8Array | string, name?: string): Promise<string> =>
  read(bytes, name).then(
    () => "none",
    (error: Error) => error.message,
  );

test("Word files are read with paragraphs, headings, tabs and tables, without deleted text", async () => {
  const table = `<w:tbl><w:tr><w:tc>${paragraph("a")}</w:tc><w:tc>${paragraph("b")}</w:tc></w:tr></w:tbl>`;
  const heading = '<w:p><w:pPr><w:pStyle w:val="Heading2"/></w:pPr><w:r><w:t>Head</w:t></w:r></w:p>';
  const deleted =
    "<w:p><w:del><w:r><w:delText>gone</w:delText></w:r></w:del><w:r><w:t>left</w:t><w:tab/><w:t>&lt;right&gt; &#x6771;</w:t></w:r></w:p>";
  expect(await read(docx(heading + deleted + table))).toEqual({
    text: "## Head\nleft\t<right> 東\na \tb",
    parts: { count: 3, kind: "pages" },
    isCut: false,
  });
});

test("PowerPoint is read in the order of slides, Excel by sheets, OpenDocument by paragraphs", async () => {
  const slides = Array.from({ length: 11 }, (_, i) => `slide ${i + 1}`);
  const { text, parts } = await read(pptx(slides));
  expect([...text.matchAll(/slide \d+/g)].map(String)).toEqual(slides);
  expect(parts).toEqual({ count: 11, kind: "slides" });
  expect(await read(xlsx())).toEqual({
    text: "# R&D\n\nName\t\t東\n\t2\tx\n\n# Empty",
    parts: { count: 2, kind: "sheets" },
    isCut: false,
  });
  const body = "<text:h>Head</text:h><text:p>one<text:s/><text:span>two</text:span><text:tab/>three</text:p>";
  expect((await read(odt(body))).text).toBe("Head\none two\tthree");
});

test("PDF is read page by page, without its scripts, forms and attached files", async () => {
  const objects = [
    "<</S/JavaScript/JS(app.alert\\(1\\); while\\(true\\);)>>",
    "<</Type/EmbeddedFile/Length 3>>\nstream\nabc\nendstream",
  ];
  const catalogue = "/OpenAction 8 0 R/Names<</JavaScript<</Names[(x) 8 0 R]>>/EmbeddedFiles<</Names[(y) 9 0 R]>>>>";
  const seen: number[] = [];
  const file = new Blob([pdf(["Hello there", "Second page"], { objects, catalogue }) as BlobPart]);
  expect(await readDocument(file, "x.pdf", (page) => seen.push(page))).toEqual({
    text: "[1/2]\nHello there\n\n[2/2]\nSecond page",
    parts: { count: 2, kind: "pages" },
    isCut: false,
  });
  expect(seen).toEqual([1, 2]);
});

test("mails and RTF are read as plain text", async () => {
  const mail =
    "From: A <a@x.y>\r\nTo: b@x.y\r\nSubject: =?utf-8?q?H=C3=A9?=\r\nContent-Type: text/html\r\n\r\n<style>p{}</style><p>Hi &amp; bye</p>";
  expect((await read(mail, "m.eml")).text).toBe("Subject: Hé\nFrom: A <a@x.y>\nTo: <b@x.y>\n\nHi & bye");
  const rtf =
    "{\\rtf1\\ansi{\\fonttbl{\\f0 Arial;}}{\\*\\generator x;}\\pard One\\'e9 \\b two\\b0\\par \\u26481?\\tab {\\i x}\\par}";
  expect((await read(rtf)).text).toBe("Oneé two\n東\tx");
});

const ENCRYPT =
  "/Encrypt<</Filter/Standard/V 1/R 2/O(aaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaa)/U(bbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbb)/P -4>>/ID[(a)(a)]";

test.each([
  ["a PDF with a password", pdf(["x"], { trailer: ENCRYPT }), "protected"],
  ["a scanned PDF", pdf(["", ""]), "noText"],
  ["half a PDF", pdf(["x"]).slice(0, 30), "damaged"],
  ["a Word file with a password", "\u00d0\u00cf\u0011\u00e0", "unknown"],
  ["an OpenDocument file with a password", odt("", "<manifest:encryption-data/>"), "protected"],
  ["an archive of something else", docx("").slice(0, 0), "unknown"],
  ["half an archive", docx(paragraph("x")).slice(0, 200), "damaged"],
  ["an empty Word file", docx(""), "noText"],
  ["a bomb", bomb(1, 65e6), "unpacked"],
])("%s is refused", async (_, bytes, expected) => expect(await fault(bytes)).toBe(expected), 30_000);

test("an OLE file is refused as protected", async () => {
  expect(await fault(Uint8Array.of(0xd0, 0xcf, 0x11, 0xe0, 0xa1, 0xb1))).toBe("protected");
});

test("an archive gives no more bytes than the size that it declares", async () => {
  expect(await fault(bomb(10, 1000))).toBe("noText"); // a thousand bytes of it, without a tag
});

test("a long text is cut and marked as cut", async () => {
  const { text, isCut } = await read(docx(paragraph("word ".repeat(1000)).repeat(500)));
  expect([isCut, text.length <= TEXT_CHARS_MAX, text.length > TEXT_CHARS_MAX - 1000]).toEqual([true, true, true]);
});

test("entities that a document declares are not expanded, and no file is fetched", async () => {
  const laughs = Array.from({ length: 9 }, (_, i) => `<!ENTITY l${i + 1} "${`&l${i};`.repeat(10)}">`).join("");
  const xml = `<?xml version="1.0"?><!DOCTYPE x [<!ENTITY l0 "ha">${laughs}<!ENTITY e SYSTEM "file:///etc/passwd">]><w:t>&l9;&e;!</w:t>`;
  expect([...xmlPieces(xml)].filter(({ kind }) => kind === "text").map(({ text }) => text)).toEqual(["&l9;&e;!"]);
  const { text } = await read(docx(`<!DOCTYPE x [${laughs}]>${paragraph("&l9;")}`));
  expect(text).toBe("&l9;");
});

test("damaged and deep XML is read to its end", () => {
  expect([...xmlPieces("<a><!-- b")].map(({ name }) => name)).toEqual(["a"]);
  expect([...xmlPieces("<a")]).toEqual([]);
  expect([...xmlPieces("<![CDATA[<x>]]><b/>")].map(({ kind, name, text }) => kind + name + text)).toEqual([
    "text<x>",
    "openb",
    "closeb",
  ]);
  expect([...xmlPieces("<d>".repeat(300_000))].length).toBe(300_000);
  expect(attributeOf(' r:id="1" idx="2"', "id")).toBe("1");
});
