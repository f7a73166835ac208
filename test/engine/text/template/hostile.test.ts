/** Templates come with models of strangers. Any template gives a text or an AppError, and soon. */
import { describe, expect, test } from "bun:test";
import fc from "fast-check";
import { AppError } from "../../../../src/base/errors.ts";
import { parseGoTemplate } from "../../../../src/engine/text/template/go/go-template.ts";
import { goFrom } from "../../../../src/engine/text/template/go/value.ts";
import { parseJinja } from "../../../../src/engine/text/template/jinja.ts";
import { anyCharacter } from "../../../characters.ts";
import { cpuMs } from "../../../cpu-time.ts";

const now = new Date(2026, 10, 21);
const limits = { outputLength: 1_000_000, steps: 1_000_000 };
const values = {
  a: "text é 👋",
  b: { c: [1, 2.5, null, true, "x"], d: {} },
  messages: [{ role: "user", content: "hi", Role: "user" }],
};

/** Time limit in milliseconds; the limits above allow about a twentieth of it. */
const TIME_MAX_MS = 10_000;

/** A template's text, or its AppError. */
function outcome(run: () => string): string | AppError {
  const start = cpuMs();
  try {
    return run();
  } catch (error) {
    if (error instanceof AppError) return error;
    throw error;
  } finally {
    expect(cpuMs() - start).toBeLessThan(TIME_MAX_MS);
  }
}

const runGo = (source: string): string | AppError =>
  outcome(() => parseGoTemplate(source).render(goFrom(values), { now, limits }));
const runJinja = (source: string): string | AppError => outcome(() => parseJinja(source, limits).render(values, now));

const GO = `{{ }} {{- -}} if else end range with define template block break continue nil true . $ $x .a .b.c .messages
  := = | ( ) , "s" \`r\` 'c' 1 -2 1.5 0x and or not eq lt len index slice print printf "%v%5d" html js json /* */ text`;
const JINJA = `{{ }} {% %} {%- -%} {# #} if elif else endif for in endfor set endset macro endmacro call endcall filter
  break m a b messages x ( ) [ ] { } , : . | ~ + - * // % ** == < not and or none is true 'it' "s" 0 1 2.5 range
  namespace loop.index length join tojson replace map upper default sort string list format split text`;

/** Any sequence of a template's tokens, with single characters in between. */
const soup = (pieces: string): fc.Arbitrary<string> =>
  fc
    .array(
      fc.oneof(
        { weight: 12, arbitrary: fc.constantFrom(...pieces.split(/\s+/)) },
        { weight: 4, arbitrary: fc.constantFrom(" ", "\n") },
        { weight: 1, arbitrary: fc.string({ unit: anyCharacter, maxLength: 2 }) },
      ),
      { maxLength: 40 },
    )
    .map((parts) => parts.join(" "));

/** Closed actions, so that more of them run. */
const actions = (pieces: string, [open, close]: readonly [string, string]): fc.Arbitrary<string> =>
  fc
    .array(
      soup(pieces).map((inner) => `${open} ${inner} ${close}`),
      { maxLength: 4 },
    )
    .map((all) => all.join("\n"));

describe("a template of random text gives text or an AppError", () => {
  const check = (arbitrary: fc.Arbitrary<string>, run: (source: string) => unknown): void =>
    fc.assert(
      fc.property(arbitrary, (source) => void run(source)),
      { numRuns: 1500, seed: 20261121 },
    );

  test("Go", () => check(fc.oneof(soup(GO), actions(GO, ["{{", "}}"])), runGo));
  test("Jinja", () =>
    check(fc.oneof(soup(JINJA), actions(JINJA, ["{{", "}}"]), actions(JINJA, ["{%", "%}"])), runJinja));
});

const twice = (statement: string, times: number): string => statement.repeat(times);

describe("a template that runs or grows without end is refused", () => {
  const jinja: Record<string, string> = {
    "a long range": "{% for i in range(1000000000) %}x{% endfor %}",
    "a range that is never used": "{{ range(10 ** 15) }}",
    "loops in loops":
      "{% for a in range(999) %}{% for b in range(999) %}{% for c in range(999) %}{% endfor %}{% endfor %}{% endfor %}",
    "a macro that calls itself": "{% macro m(x) %}{{ m(x) }}{% endmacro %}{{ m(1) }}",
    "a macro that calls itself twice":
      "{% macro m(n) %}{% if n %}{{ m(n - 1) }}{{ m(n - 1) }}{% endif %}{% endmacro %}{{ m(60) }}",
    "text that doubles": `{% set x = 'ab' %}${twice("{% set x = x ~ x %}", 60)}{{ x }}`,
    "a list that doubles": `{% set x = [1] %}${twice("{% set x = x + x %}", 60)}{{ x | length }}`,
    "a value inside itself many times": `{% set x = [1, 2] %}${twice("{% set x = [x, x] %}", 60)}{{ x }}`,
    "its JSON": `{% set x = {'k': 1} %}${twice("{% set x = {'a': x, 'b': x} %}", 60)}{{ x | tojson }}`,
    "its equal": `{% set x, y = [1], [1] %}${twice("{% set x, y = [x, x], [y, y] %}", 60)}{{ x == y }}`,
    "percent formatting": `{% set x = 'a' * 99999 %}{% set y = ('%(k)s' * 5000) % {'k': x} %}`,
    repetition: "{{ 'abc' * 10 ** 12 }}",
    replacement: `{% set x = 'a' * 9999 %}{% set y = x.replace('a', x) %}`,
    joining: `{% set x = 'a' * 9999 %}{% set y = x | list | join(x) %}`,
    formatting: `{% set x = 'a' * 99999 %}{% set y = '${"{0}".repeat(5000)}'.format(x) %}`,
    padding: "{{ 'a'.ljust(10 ** 12) }}{{ 'a' | center(10 ** 12) }}",
    "deep brackets": `{{ ${"(".repeat(200_000)}1${")".repeat(200_000)} }}`,
    "deep conditions": `${twice("{% if true %}", 20_000)}x${twice("{% endif %}", 20_000)}`,
    "a long run of spaces": `{{ 1 }}${" ".repeat(100_000)}{% generation %}`,
    "a long template": "x".repeat(2_000_000),
  };
  for (const [name, source] of Object.entries(jinja)) {
    test(`Jinja: ${name}`, () => expect(runJinja(source)).toBeInstanceOf(AppError));
  }

  const go: Record<string, string> = {
    "a template that calls itself": '{{ define "t" }}{{ template "t" . }}{{ end }}{{ template "t" . }}',
    "two that call each other twice":
      '{{ define "a" }}{{ template "b" . }}{{ template "b" . }}{{ end }}' +
      '{{ define "b" }}{{ template "a" . }}{{ end }}{{ template "a" . }}',
    "a long range": "{{ range 1000000000 }}{{ end }}",
    "text that doubles": `{{ $x := "ab" }}${twice("{{ $x = print $x $x }}", 60)}{{ $x }}`,
    formatting: `{{ $x := "${"a".repeat(9999)}" }}{{ printf "${"%[1]s%s".repeat(99)}" ${"$x ".repeat(900)}}}`,
    padding: `{{ printf "%999999999d" 1 }}${twice('{{ printf "%1000d" 1 }}', 2000)}`,
    "deep parentheses": `{{ ${"(".repeat(200_000)}1${")".repeat(200_000)} }}`,
    "deep conditions": `${twice("{{ if true }}", 20_000)}x${twice("{{ end }}", 20_000)}`,
    "a long template": "x".repeat(2_000_000),
  };
  for (const [name, source] of Object.entries(go)) {
    test(`Go: ${name}`, () => expect(runGo(source)).toBeInstanceOf(AppError));
  }
});

describe("reading a long text repeatedly counts steps:", () => {
  const reads = ["s[5]", "s[5:6]", "s | length", "s.strip()", "s.isalpha()", "s.find('b')", "s.upper"];
  test.each(reads)("%s", (read) => {
    const source = `{% set s = 'a' * 900000 %}{% for i in range(50000) %}{% if ${read} %}{% endif %}{% endfor %}`;
    expect(String(runJinja(source))).toContain("did not finish within 1000000 steps");
  });
});

describe("going through a large value repeatedly counts steps:", () => {
  const text = "'".repeat(100_000);
  const map = Object.fromEntries(Array.from({ length: 20_000 }, (_, i) => [`k${i}`, i]));
  const context = { text, texts: Array.from({ length: 100 }, (_, i) => "a".repeat(10_000) + i), map };
  const reads: Record<string, string> = {
    "a copy of a map": "dict(map)",
    "a map as arguments": "namespace(**map)",
    "order of texts": "text < text or text > text",
    "the largest text": "texts | max",
    "a filter on each text": "texts | map('upper')",
    "a test on each text": "texts | select('upper')",
    "escapes for a page": "text | e",
    "escapes for an address": "text | urlencode",
    "many characters to strip": "text.strip(texts[0])",
    "a long format of a time": "strftime_now(texts[0])",
  };
  test.each(Object.entries(reads))("%s", (_, read) => {
    const source = `{% for i in range(100) %}{% if ${read} %}{% endif %}{% endfor %}`;
    const got = outcome(() => parseJinja(source, { ...limits, steps: 200_000 }).render(context, now));
    expect(String(got)).toContain("did not finish within 200000 steps");
  });
});

describe("a Go template counts steps without output:", () => {
  const texts = Array.from({ length: 2000 }, () => "a".repeat(100));
  const lists = { texts, tools: [{ schema: { texts } }], text: "<\u0001é".repeat(40_000) };
  const numbers = Array.from({ length: 198 }, (_, i) => ` := 1 }}{{ $v${i}`).join("");
  const reads: Record<string, string> = {
    "texts in a list that are cut off": '{{ if printf "%.0s" $.texts }}{{ end }}',
    "texts deep in a value": '{{ if printf "%.0s" $.tools }}{{ end }}',
    "one value that is used many times": `{{ if printf "${"%.0[1]s".repeat(20)}" $.texts }}{{ end }}`,
    "more directives than values": `{{ if printf "${"%d".repeat(3000)}" }}{{ end }}`,
    "many arguments": `{{ if and ${"1 ".repeat(100_000)} }}{{ end }}`,
    "many variables": `{{ $x${numbers} := 1 }}${"{{ if $ }}{{ end }}".repeat(400)}`,
    "a list that an action prints": "{{ $.tools }}",
    "escapes for a page": "{{ if html $.text }}{{ end }}",
    "escapes for a script": "{{ if js $.text }}{{ end }}",
    "escapes for an address": "{{ if urlquery $.text }}{{ end }}",
    quotes: '{{ if printf "%q" $.text }}{{ end }}',
    JSON: "{{ if json $.texts }}{{ end }}",
    "bytes of a text": "{{ if index $.text 1 }}{{ end }}{{ if slice $.text 1 1 }}{{ end }}",
  };
  test.each(Object.entries(reads))("%s", (_, read) => {
    const template = parseGoTemplate(`{{ range 100 }}${read}{{ end }}`);
    const render = () =>
      outcome(() => template.render(goFrom(lists), { now, limits: { ...limits, outputLength: 1e8 } }));
    expect(String(render())).toContain("did not finish within 1000000 steps");
  });

  test("a loop over a map does not sort it again", () => {
    const map = goFrom({
      map: Object.fromEntries(Array.from({ length: 20_000 }, (_, i) => [`k${(i * 7919) % 20_011}`, i])),
    });
    const template = parseGoTemplate("{{ range 1000 }}{{ range $.map }}{{ break }}{{ end }}{{ end }}");
    const start = cpuMs();
    template.render(map, { now, limits });
    expect(cpuMs() - start).toBeLessThan(2000);
  });

  test("one printf is limited to the size of a prompt", () => {
    const template = parseGoTemplate(`{{ printf "${"%[1]s".repeat(500)}" .text }}`);
    expect(() => template.render(goFrom(lists), { now })).toThrow("printf: expected at most");
  });
});

test("a template that runs out of steps is an error of the model's file", () => {
  const endless = [
    runJinja("{% for i in range(99999) %}{% for j in range(99999) %}{% endfor %}{% endfor %}"),
    runGo("{{ range 1000000000 }}{{ end }}"),
  ];
  for (const error of endless) {
    expect(error).toMatchObject({ code: "bad_file" });
    expect(String(error)).toMatch(/the model's (chat )?template did not finish within 1000000 steps/);
  }
});

test("text that is not printed is bounded too", () => {
  const tight = { outputLength: 1000, steps: 1e9 };
  const go = parseGoTemplate(`{{ $x := "ab" }}${twice("{{ $x = print $x $x }}", 20)}`);
  expect(() => go.render(null, { now, limits: tight })).toThrow("texts of at most 1000");
  const padded = parseGoTemplate(`{{ $x := printf "${twice("%999999d", 30)}"${twice(" 1", 30)} }}`);
  expect(() => padded.render(null, { now, limits: { outputLength: 1e9, steps: 1e9 } })).toThrow("columns of padding");
  const jinja = parseJinja(`{% set ns = namespace(x='ab') %}${twice("{% set ns.x = ns.x + ns.x %}", 20)}`, tight);
  expect(() => jinja.render({}, now)).toThrow("at most 1000");
  for (const formatted of ["'{0}{0}{0}{0}'.format(x)", "'%(k)s%(k)s%(k)s%(k)s' % {'k': x}"]) {
    const format = parseJinja(`{% set x = 'a' * 300 %}{% set y = ${formatted} %}`, tight);
    expect(() => format.render({}, now)).toThrow("at most 1000");
  }
});

describe("a template reads no properties beyond its values", () => {
  for (const source of [
    "{{ messages.constructor }}",
    "{{ a.__class__ }}",
    "{{ b.__proto__ }}",
    "{{ a.constructor.constructor }}",
    "{{ range.__globals__ }}",
    "{{ 'toString' | attr }}",
    "{{ a | constructor }}",
    "{{ a is constructor }}",
  ]) {
    test(`Jinja: ${source}`, () => {
      const got = runJinja(source);
      expect(got instanceof AppError ? "" : got).toBe("");
    });
  }

  for (const source of ["{{ .constructor }}", "{{ .__proto__ }}", "{{ .a.length }}", "{{ toString . }}"]) {
    test(`Go: ${source}`, () => {
      const got = runGo(source);
      expect(got instanceof AppError ? "" : got).toBeOneOf(["", "<no value>"]);
    });
  }
});

describe("a long Go template is parsed or refused within 1.5 seconds of processor time:", () => {
  const long: Record<string, string> = {
    "variables, declared and used": Array.from(
      { length: 38_000 },
      (_, i) => `{{$${1e5 + i} := 1}}{{$${1e5 + i}}}`,
    ).join(""),
    "one name that is declared again and again": `{{$a := 1}}{{$b := 1}}${"{{$b := 1}}{{$a}}".repeat(30_000)}`,
    "blanks and one word, defined again and again as nothing": `{{define "a"}}${"{{/**/}} ".repeat(25_000)}x{{end}}${'{{define "a"}}{{end}}'.repeat(10_000)}`,
  };
  test.each(Object.entries(long))("%s", (_, source) => {
    const start = cpuMs();
    runGo(source);
    expect(cpuMs() - start).toBeLessThan(1500);
  });

  test("200 variables in a scope are accepted, and more are too large", () => {
    const declaring = (count: number) => Array.from({ length: count }, (_, i) => `{{ $v${i} := ${i} }}`).join("");
    expect(runGo(`${declaring(200)}{{ $v0 }} {{ $v199 }}`)).toBe("0 199");
    expect(runGo(declaring(201))).toMatchObject({
      code: "too_large",
      message: expect.stringMatching(/200 variables$/),
    });
    const scopes = `{{ if true }}${declaring(150)}{{ end }}`.repeat(2) + "{{ $x := 1 }}" + "{{ $x = 2 }}".repeat(300);
    expect(runGo(`${scopes}{{ $x }}`)).toBe("2");
  });
});

test("long numbers, valid or not, take time linear in their length", () => {
  for (const body of ["1", "1_", "1.", "0x1", "0x1.1"]) {
    const digits = body + body.slice(-1).repeat(200_000).replaceAll(".", "1");
    for (const end of ["e", "i", "p", "_x", ""]) runGo(`{{ ${digits}${end} }}`);
  }
  const jinja = parseJinja("{{ a | float }}", limits);
  expect(outcome(() => jinja.render({ a: `${"1".repeat(200_000)}x` }, now))).toBe("0.0");
  expect(runGo("{{ 0x1p4 }} {{ 0x.8p1 }} {{ 1_0.5 }} {{ 1.e2 }}")).toBe("16 1 10.5 100");
});
