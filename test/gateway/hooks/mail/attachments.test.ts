/** Facts about a mail besides its text: other recipients, and attachments. */
import { describe, expect, test } from "bun:test";
import { plain } from "../../../../src/gateway/agent/boundary/tainted-text.ts";
import { hooksSchema } from "../../../../src/gateway/hooks/config.ts";
import { makeMappings, runMapping } from "../../../../src/gateway/hooks/mapping/index.ts";
import { parseMail } from "../../../../src/gateway/hooks/mail/message.ts";
import { makeRequest } from "../mapping/view.ts";
import { promptOf } from "../mapping/presets/run.ts";

const ALL = { includeBody: true, maxBytes: 20_000, isCut: false };
const HEAD = "From: z@x.org\r\nTo: me@example.org\r\nSubject: Invoice\r\nMessage-ID: <s9@x>\r\nMIME-Version: 1.0\r\n";

/** A mail of a text and parts, each with its headers and body. */
const mixed = (parts: readonly [headers: string, body: string | Uint8Array][], { head = HEAD } = {}): Uint8Array =>
  Buffer.concat([
    Buffer.from(`${head}Content-Type: multipart/mixed; boundary=b2\r\n\r\n`),
    ...[["Content-Type: text/plain", "Please find it attached."] as const, ...parts].flatMap(([headers, body]) => [
      Buffer.from(`--b2\r\n${headers}\r\n\r\n`),
      Buffer.from(body as string),
      Buffer.from("\r\n"),
    ]),
    Buffer.from("--b2--\r\n"),
  ]);
const read = (source: Uint8Array, options = ALL) => parseMail(source, options);
const prompt = async (source: Uint8Array, options = ALL) =>
  promptOf("mail", { source: "imap", messages: [await read(source, options)] });

const PDF: [string, string] = [
  "Content-Type: application/pdf; name=invoice.pdf\r\nContent-Disposition: attachment; filename=invoice.pdf\r\n" +
    "Content-Transfer-Encoding: base64",
  "JVBERi0=",
];

test("an attachment is described by name, type and size", async () => {
  const { attachments } = await read(mixed([PDF]));
  expect(attachments).toEqual([{ name: "invoice.pdf", type: "application/pdf", size: 5 }]);
  expect(await prompt(mixed([PDF]))).toEndWith(
    "Please find it attached.\nAttachments:\n- invoice.pdf (application/pdf, 5 bytes)",
  );
});

test("a template can show an attachment's name", async () => {
  const hooks = hooksSchema.parse({
    presets: ["mail"],
    presetSettings: { mail: { messageTemplate: "{{ item.attachments[0].name }} of {{ item.replyTo }}" } },
  });
  const head = `${HEAD}Reply-To: Zoe <zoe@x.org>\r\n`;
  const payload = { source: "imap", messages: [await read(mixed([PDF], { head }))] };
  const outcome = await runMapping(
    makeMappings({ hooks, folder: "/" }).all[0]!,
    makeRequest({ path: "mail", payload }),
    {
      transforms: { run: () => expect.unreachable() },
      transformsDir: "/nowhere",
      transformTimeoutMs: 1000,
      isChannel: () => false,
    },
  );
  const [action] = outcome.kind === "actions" ? outcome.actions : [];
  expect(action?.kind === "agent" && plain(action.message)).toBe("invoice.pdf of Zoe <zoe@x.org>");
});

test("the prompt shows further recipients, the reply address, the mailing list and automatic senders", async () => {
  const head =
    `${HEAD}Cc: a@b.org, "Eve" <eve@f.org>\r\nReply-To: desk@x.org\r\nList-Id: News <news.x.org>\r\n` +
    "Auto-Submitted: auto-generated\r\nDate: Sat, 21 Nov 2026 14:00:00 +0100\r\n";
  const text = await prompt(mixed([], { head }));
  expect(text).toContain(
    "From: z@x.org\nTo: me@example.org\nCc: a@b.org, Eve <eve@f.org>\nReply to: desk@x.org\n" +
      "Date: 2026-11-21T13:00:00.000Z\nMailing list: News <news.x.org>\nSent by a program: auto-generated\n",
  );
  const plainMail = await prompt(mixed([], { head: `${HEAD}Reply-To: z@x.org\r\nAuto-Submitted: no\r\n` }));
  for (const label of ["Cc:", "Reply to:", "Mailing list:", "Sent by"]) expect(plainMail).not.toContain(label);
});

describe("the name of an attachment", () => {
  const nameOf = async (headers: string) => (await read(mixed([[headers, "x"]]))).attachments?.[0]?.name;
  test.each<[string, string]>([
    ["Content-Disposition: attachment; filename*=utf-8''r%C3%A4.bin", "rä.bin"],
    ["Content-Disposition: attachment; filename*0*=utf-8''%e2%82%ac; filename*1=x.bin", "€x.bin"],
    ['Content-Disposition: attachment; filename="=?utf-8?B?csOkLnBkZg==?="', "rä.pdf"],
    ["Content-Type: image/png; name=only.png\r\nContent-Disposition: attachment", "only.png"],
    ["Content-Disposition: attachment", "(no name)"],
    ['Content-Disposition: attachment; filename="a\tb\u0085 c.bin"', "a b c.bin"],
    [`Content-Disposition: attachment; filename="${"x".repeat(900)}"`, "x".repeat(200)],
  ])("%s", async (headers, name) => {
    const type = headers.startsWith("Content-Type") ? "" : "Content-Type: application/x-y\r\n";
    expect(await nameOf(type + headers)).toBe(name);
  });
});

describe("attached text", () => {
  const attached = (type: string, name: string) =>
    `Content-Type: ${type}\r\nContent-Disposition: attachment; filename="${name}"`;
  const textOf = async (part: [string, string | Uint8Array], options = ALL) =>
    (await read(mixed([part]), options)).attachments?.[0]?.text;

  test.each<[string, string, string | Uint8Array, string | undefined]>([
    ["text/csv", "a.csv", "who,what\r\nann,lamp\r\n", "who,what\nann,lamp"],
    ["text/plain; charset=iso-8859-1", "a.txt", Buffer.from("grün", "latin1"), "grün"],
    [
      "text/plain\r\nContent-Transfer-Encoding: base64",
      "a.txt",
      Buffer.from("\ufeffgrün", "utf16le").toString("base64"),
      "grün",
    ],
    ["application/octet-stream", "Notes.MD", "# Notes", "# Notes"],
    [
      "text/calendar; method=REQUEST",
      "i.ics",
      "BEGIN:VCALENDAR\r\nSUMMARY:Tea\r\nEND:VCALENDAR",
      "BEGIN:VCALENDAR\nSUMMARY:Tea\nEND:VCALENDAR",
    ],
    ["application/octet-stream", "a.exe", "MZ", undefined],
    ["text/html", "a.html", "<p>hi", undefined],
    ["application/octet-stream", "a.constructor", "x", undefined],
  ])("%s %s", async (type, name, body, wanted) => {
    expect(await textOf([attached(type, name), body])).toBe(wanted);
  });

  test("has the head and the text of an attached mail", async () => {
    const inner = "From: Ann <ann@x.org>\r\nSubject: =?utf-8?q?Tea=3F?=\r\n\r\nAt five?\r\n";
    expect(await textOf([attached("message/rfc822", "f.eml"), inner])).toBe(
      "From: Ann <ann@x.org>\nSubject: Tea?\n\nAt five?",
    );
    expect(await textOf([attached("application/octet-stream", "f.eml"), inner])).toContain("At five?");
  });

  test("is part of the prompt, and counts against maxBytes with the body", async () => {
    const csv: [string, string] = [attached("text/csv", "a.csv"), "who,what\r\nann,lamp"];
    expect(await prompt(mixed([csv]))).toContain(
      "- a.csv (text/csv, 18 bytes)\n--- text of a.csv:\nwho,what\nann,lamp",
    );
    const body = "Please find it attached.".length;
    expect(await textOf(csv, { ...ALL, maxBytes: body + 3 })).toBe("who…");
    expect(await textOf(csv, { ...ALL, maxBytes: body })).toBeUndefined();
    expect(await textOf(csv, { ...ALL, includeBody: false })).toBeUndefined();
    const two = await read(mixed([csv, csv]), { ...ALL, maxBytes: body + 20 });
    expect(two.attachments?.map(({ text }) => text)).toEqual(["who,what\nann,lamp", "who…"]);
  });
});

describe("attachments of mail programs", () => {
  const logo =
    "Content-Type: image/png; name=logo.png\r\nContent-ID: <logo>\r\nContent-Disposition: inline; filename=logo.png";
  test("images within the text are marked as such", async () =>
    expect(await prompt(mixed([[logo, "AAAA"]]))).toContain(
      "- logo.png (image/png, 5 bytes, an image within the text)",
    ));
  test("winmail.dat is reported as packed attachments", async () => {
    const headers = "Content-Type: application/ms-tnef; name=winmail.dat\r\nContent-Disposition: attachment";
    expect(await prompt(mixed([[headers, "x"]]))).toContain(
      "winmail.dat (application/ms-tnef, 2 bytes, attachments packed",
    );
  });
  test("an attachment within nested parts is found", async () => {
    const inner = `Content-Type: multipart/mixed; boundary=c\r\n\r\n--c\r\n${PDF[0]}\r\n\r\n${PDF[1]}\r\n--c--`;
    const [headers = "", ...rest] = inner.split("\r\n\r\n");
    const found = await read(mixed([[headers, rest.join("\r\n\r\n")]]));
    expect(found.attachments?.map(({ name }) => name)).toEqual(["invoice.pdf"]);
  });
  test("twenty attachments are named, and the others are counted", async () => {
    const source = mixed(Array.from({ length: 5000 }, () => PDF));
    const { attachments, furtherAttachments } = await read(source);
    expect([attachments?.length, furtherAttachments]).toEqual([20, 4980]);
    expect(await prompt(source)).toEndWith("- and 4980 more");
  });
  test("an attachment that was cut off is shown with a minimum size", async () => {
    const large = PDF[0].replaceAll("invoice", "large");
    const source = mixed([PDF, [large, "JVBERi0=\r\n".repeat(1000)]]).subarray(0, 6000);
    const text = await prompt(source, { ...ALL, isCut: true });
    expect(text).toMatch(
      /- invoice\.pdf \(application\/pdf, 5 bytes\)\n- large\.pdf \(application\/pdf, more than [\d.]+ kB\)/,
    );
  });
});

test("malformed attachments from a watcher are ignored, and long ones are cut", async () => {
  const posted = (attachments: unknown) =>
    promptOf("mail", { source: "x", messages: [{ from: "a", subject: "s", snippet: "n", attachments }] });
  for (const attachments of [null, 7, "x", {}, [null, 7, "x", []], [{ name: {}, size: "many", text: [] }]]) {
    expect(await posted(attachments)).toContain("From: a");
  }
  const long = await posted(Array.from({ length: 30 }, () => ({ name: "a.txt", text: "x".repeat(15_000) })));
  expect(long.length).toBeLessThan(30_000);
  expect(long).toContain("- and 10 more");
});
