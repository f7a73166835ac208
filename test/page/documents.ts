/** Small documents of each kind, as files. */
import { strToU8, zipSync } from "fflate";

const zip = (parts: Readonly<Record<string, string>>): Uint8Array =>
  zipSync(Object.fromEntries(Object.entries(parts).map(([name, text]) => [name, strToU8(text)])));

const W = 'xmlns:w="http://schemas.openxmlformats.org/wordprocessingml/2006/main"';

export const docx = (body: string): Uint8Array =>
  zip({
    "[Content_Types].xml": "<Types/>",
    "word/document.xml": `<?xml version="1.0"?><w:document ${W}><w:body>${body}</w:body></w:document>`,
    "docProps/app.xml": "<Properties><Pages>3</Pages></Properties>",
  });

export const paragraph = (text: string): string => `<w:p><w:r><w:t xml:space="preserve">${text}</w:t></w:r></w:p>`;

export const pptx = (slides: readonly string[]): Uint8Array =>
  zip(
    Object.fromEntries([
      ["ppt/presentation.xml", "<p:presentation/>"],
      ...slides.map((text, i) => [
        `ppt/slides/slide${i + 1}.xml`,
        `<p:sld><a:p><a:r><a:t>${text}</a:t></a:r></a:p></p:sld>`,
      ]),
    ]) as Record<string, string>,
  );

export const xlsx = (): Uint8Array =>
  zip({
    "xl/workbook.xml":
      '<workbook><sheets><sheet name="R&amp;D" sheetId="1" r:id="rId2"/><sheet name="Empty" r:id="rId1"/></sheets></workbook>',
    "xl/_rels/workbook.xml.rels":
      '<Relationships><Relationship Id="rId1" Target="worksheets/sheet1.xml"/><Relationship Id="rId2" Target="worksheets/sheet2.xml"/></Relationships>',
    "xl/sharedStrings.xml": "<sst><si><t>Name</t></si><si><r><t>東</t></r><rPh><t>ヒガシ</t></rPh></si></sst>",
    "xl/worksheets/sheet1.xml": "<worksheet><sheetData/></worksheet>",
    "xl/worksheets/sheet2.xml":
      '<worksheet><sheetData><row><c r="A1" t="s"><v>0</v></c><c r="C1" t="s"><v>1</v></c></row><row><c r="B2"><f>1+1</f><v>2</v></c><c r="C2" t="inlineStr"><is><t>x</t></is></c></row></sheetData></worksheet>',
  });

export const odt = (body: string, manifest = ""): Uint8Array =>
  zip({
    mimetype: "application/vnd.oasis.opendocument.text",
    "META-INF/manifest.xml": `<manifest:manifest>${manifest}</manifest:manifest>`,
    "content.xml": `<office:document-content><office:body><office:text>${body}</office:text></office:body></office:document-content>`,
  });

/** An archive with a part of 60 MB of the same byte, of declared or understated size. */
export function bomb(megabytes: number, claims?: number): Uint8Array {
  const bytes = zipSync({ "word/document.xml": new Uint8Array(megabytes * 1e6).fill(0x61) }, { level: 9 });
  if (claims === undefined) return bytes;
  const view = new DataView(bytes.buffer);
  for (let at = 0; at + 4 < bytes.length; at++) {
    const signature = view.getUint32(at, true);
    if (signature === 0x04034b50) view.setUint32(at + 22, claims, true);
    if (signature === 0x02014b50) view.setUint32(at + 24, claims, true);
  }
  return bytes;
}

interface PdfOptions {
  /** Further objects, from number 3 + 2 × pages + 1 on, and entries of the catalogue. */
  readonly objects?: readonly string[];
  readonly catalogue?: string;
  readonly trailer?: string;
}

/** A PDF with one line of text a page. */
export function pdf(
  pages: readonly string[],
  { objects = [], catalogue = "", trailer = "" }: PdfOptions = {},
): Uint8Array {
  const kids = pages.map((_, i) => `${4 + 2 * i} 0 R`).join(" ");
  const all = [
    `<</Type/Catalog/Pages 2 0 R${catalogue}>>`,
    `<</Type/Pages/Kids[${kids}]/Count ${pages.length}>>`,
    "<</Type/Font/Subtype/Type1/BaseFont/Helvetica/Encoding/WinAnsiEncoding>>",
    ...pages.flatMap((text, i) => {
      const content = text === "" ? "" : `BT /F1 12 Tf 72 700 Td (${text}) Tj ET`;
      return [
        `<</Type/Page/Parent 2 0 R/MediaBox[0 0 612 792]/Resources<</Font<</F1 3 0 R>>>>/Contents ${5 + 2 * i} 0 R>>`,
        `<</Length ${content.length}>>\nstream\n${content}\nendstream`,
      ];
    }),
    ...objects,
  ];
  let text = "%PDF-1.7\n";
  const offsets = all.map((object, i) => {
    const at = text.length;
    text += `${i + 1} 0 obj\n${object}\nendobj\n`;
    return at;
  });
  const table = offsets.map((at) => `${String(at).padStart(10, "0")} 00000 n \n`).join("");
  text += `xref\n0 ${all.length + 1}\n0000000000 65535 f \n${table}trailer\n<</Size ${all.length + 1}/Root 1 0 R${trailer}>>\nstartxref\n${text.length}\n%%EOF`;
  return new Uint8Array(Buffer.from(text, "latin1"));
}
