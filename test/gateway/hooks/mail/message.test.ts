import { describe, expect, test } from "bun:test";
import fc from "fast-check";
import { htmlText } from "../../../../src/gateway/hooks/mail/html-text.ts";
import { parseMail } from "../../../../src/gateway/hooks/mail/message.ts";
import { cpuMs } from "../../../cpu-time.ts";

const ALL = { includeBody: true, maxBytes: 20_000, isCut: false };
const read = (source: string | Uint8Array, options = ALL) =>
  parseMail(typeof source === "string" ? Buffer.from(source, "latin1") : source, options);
const HEAD = "From: a@example.org\r\nSubject: s\r\nMessage-ID: <1@example.org>\r\n";

describe("a mail", () => {
  test("has decoded and unfolded fields, addresses with names, and an ISO 8601 date", async () => {
    const source =
      "From: =?utf-8?q?J=C3=B6?= <jo@example.org>\r\nTo: x@example.org, Zoe <z@example.org>\r\n" +
      "Subject: =?koi8-r?B?8NLJ18XU?=\r\n again\r\nDate: Sat, 21 Nov 2026 14:00:00 +0100\r\n" +
      "Message-ID: <1@example.org>\r\n\r\nHello\r\n\r\n\r\n\r\nyou  \r\n-- \r\nJo\r\n";
    expect(await read(source)).toEqual({
      id: "<1@example.org>",
      from: "Jö <jo@example.org>",
      to: "x@example.org, Zoe <z@example.org>",
      date: "2026-11-21T13:00:00.000Z",
      subject: "Привет again",
      snippet: "Hello you -- Jo",
      body: "Hello\n\nyou\n--\nJo",
    });
  });

  test("prefers plain text; HTML alone is converted without styles, scripts, images and long addresses", async () => {
    const parts =
      'MIME-Version: 1.0\r\nContent-Type: multipart/alternative; boundary="b"\r\n\r\n' +
      "--b\r\nContent-Type: text/plain\r\n\r\nplain\r\n--b\r\nContent-Type: text/html\r\n\r\n<p>html</p>\r\n--b--\r\n";
    expect((await read(HEAD + parts)).body).toBe("plain");
    const html =
      "<style>p{}</style><h1>Big news</h1><script>x</script><p>See <a href='https://e.org/a'>this</a>, " +
      `<a href='https://e.org/${"t".repeat(500)}'>that</a> &amp; <img src=x alt=y>more</p>` +
      "<table><tr><td>lamp</td><td>dark</td></tr><tr><td>door</td><td>open</td></tr></table>";
    const { body } = await read(`${HEAD}Content-Type: text/html\r\n\r\n${html}`);
    expect(body).toBe("Big news\n\nSee this [https://e.org/a], that & more\n\nlamp dark\ndoor open");
  });

  test("has its body cut at maxBytes between characters, and only a snippet without includeBody", async () => {
    const source = `${HEAD}Content-Type: text/plain; charset=utf-8\r\nContent-Transfer-Encoding: 8bit\r\n\r\n${"ö".repeat(300)}`;
    const utf8 = Buffer.from(source);
    expect((await read(utf8, { ...ALL, maxBytes: 9 })).body).toBe("öööö…");
    const { body, snippet } = await read(utf8, { ...ALL, includeBody: false });
    expect([body, snippet]).toEqual([undefined, `${"ö".repeat(200)}…`]);
  });

  test("says in its snippet if only attachments were read", async () => {
    const parts = "Content-Type: multipart/mixed; boundary=b\r\n\r\n--b\r\nContent-Type: image/png\r\n\r\nAAAA";
    expect((await read(HEAD + parts)).body).toBeUndefined();
    expect((await read(HEAD + parts, { ...ALL, isCut: true })).snippet).toStartWith(
      "(This mail begins with attachments",
    );
    expect((await read(`${HEAD}\r\nHello`, { ...ALL, isCut: true })).body).toBe("Hello");
  });

  test("without a usable Message-ID gets a digest as its id", async () => {
    const digest = /^sha256:[0-9a-f]{64}$/;
    for (const id of ["", "<>", `<${"x".repeat(200)}@a>`, "<a\u200bb@c>", "<a b@c>"]) {
      const mail = await read(Buffer.from(`From: a@b\r\nMessage-ID: ${id}\r\n\r\nx`));
      expect([id, mail.id]).toEqual([id, expect.stringMatching(digest)]);
    }
    const [one, two] = [await read("From: a@b\r\n\r\n1"), await read("From: a@b\r\n\r\n2")];
    expect(one.id).not.toBe(two.id);
  });
});

describe("a hostile mail becomes bounded text:", () => {
  const nested = Array.from(
    { length: 5000 },
    (_, i) => `Content-Type: multipart/mixed; boundary=b${i}\r\n\r\n--b${i}\r\n`,
  ).join("");
  const part = "--b\r\nContent-Type: text/html\r\n\r\n<p>hi\r\n";
  test.each<[string, string]>([
    ["10,000 headers", `${"X-A: 1\r\n".repeat(10_000)}${HEAD}\r\nbody`],
    ["a header of a megabyte", `X: ${"y".repeat(1_000_000)}\r\n${HEAD}\r\nbody`],
    ["200,000 folded lines", `X: y\r\n${" z\r\n".repeat(200_000)}${HEAD}\r\nbody`],
    ["150,000 senders", `From: ${"a@b, ".repeat(150_000)}\r\nSubject: s\r\n\r\nbody`],
    ["quotes and brackets that never end", `From: ${'"a ('.repeat(100_000)}\r\nSubject: s\r\n\r\nbody`],
    ["50,000 encoded words", `From: a@b\r\nSubject: ${"=?utf-8?q?a?= ".repeat(50_000)}\r\n\r\nbody`],
    ["parameters without end", `${HEAD}Content-Type: text/plain; ${"a*0*=x;".repeat(100_000)}\r\n\r\nbody`],
    ["5,000 parts in each other", HEAD + nested],
    ["10,000 parts", `${HEAD}Content-Type: multipart/mixed; boundary=b\r\n\r\n${part.repeat(10_000)}`],
    ["an unknown charset", `${HEAD}Content-Type: text/plain; charset=x-none\r\n\r\nbody`],
    ["UTF-7", `${HEAD}Content-Type: text/plain; charset=utf-7\r\n\r\nHi Mom -+Jjo--!`],
    ["broken base64", `${HEAD}Content-Transfer-Encoding: base64\r\n\r\nSGVsbG8*&^gV29ybGQ=== x`],
    ["NUL", "From: a\0@b\r\nSubject: s\0s\r\nMessage-ID: <1\0@b>\r\n\r\nbo\0dy"],
    ["an unclosed boundary", `${HEAD}Content-Type: multipart/mixed; boundary=b\r\n\r\n--b\r\n\r\nbody`],
    ["nothing", ""],
    [
      "tags that open and never close",
      `${HEAD}Content-Type: text/html\r\n\r\n${"<div><b><table><tr><td>".repeat(40_000)}`,
    ],
    ["comments that never end", `${HEAD}Content-Type: text/html\r\n\r\n${"<!--".repeat(200_000)}`],
    ["nested lists", `${HEAD}Content-Type: text/html\r\n\r\n${"<ul><li>".repeat(100_000)}`],
    ["nested quotes", `${HEAD}Content-Type: text/html\r\n\r\n${"<blockquote>x".repeat(60_000)}`],
  ])("with %s", async (_, source) => {
    const mail = await read(source);
    expect(JSON.stringify(mail).length).toBeLessThan(50_000);
    for (const [key, value] of Object.entries(mail)) {
      expect([key, value.isWellFormed(), /[^\P{Cc}\n\t]/u.test(value)]).toEqual([key, true, false]);
    }
    expect(mail.from).not.toBe("");
    expect(mail.id).not.toBe("");
  });

  test("with parts that nest too deep, which keeps sender and subject", async () => {
    expect(await read(HEAD + nested)).toMatchObject({
      id: "<1@example.org>",
      from: "a@example.org",
      subject: "s",
      body: "(The parts of this mail nest too deep to be read.)",
    });
  });

  test("with blanks as long as the mail, in linear time", async () => {
    const startedMs = cpuMs();
    const { body } = await read(`${HEAD}\r\na${" ".repeat(200_000)}b\r\n`, { ...ALL, maxBytes: 1 });
    expect(body).toBe("a…");
    expect(cpuMs() - startedMs).toBeLessThan(2000); // quadratic: 12 s
  });

  test("without the blanks at the ends of lines", async () => {
    expect((await read(`${HEAD}\r\na  b \t \r\n\t \r\n  c \r\nd`)).body).toBe("a  b\n\n  c\nd");
  });

  test("from any bytes", async () => {
    await fc.assert(
      fc.asyncProperty(fc.uint8Array({ maxLength: 2000 }), fc.boolean(), async (bytes, withHead) => {
        const mail = await read(withHead ? Buffer.concat([Buffer.from(HEAD), bytes]) : bytes);
        expect(Object.values(mail).every((value) => typeof value === "string" && value.isWellFormed())).toBe(true);
      }),
      { numRuns: 200 },
    );
  });

  test("from any HTML", () =>
    fc.assert(
      fc.property(fc.string({ maxLength: 300 }), (html) => typeof htmlText(`<p>${html}`) === "string"),
      { numRuns: 200 },
    ));
});
