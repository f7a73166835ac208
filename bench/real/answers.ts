/**
 * A hundred questions through the server, greedily, judged by four rules: an answer ends by itself, is in the
 * question's language and script, has no remains of a template, and is correct. llama.cpp's answers are judged by the
 * same rules.
 */
import { join } from "node:path";
import { runHearth, startHearth, type Hearth } from "../../test/e2e/hearth.ts";
import type { Bench } from "./bench.ts";
import { QUESTIONS, type Language } from "./questions.ts";

/** Tokens of an answer, at most. */
const LENGTH = 32;
export const TEMPLATE =
  '{{ range .Messages }}{{ if eq .Role "user" }}Question: {{ .Content }}\nAnswer:{{ else }} {{ .Content }}\n{{ end }}{{ end }}';
const OPTIONS = { temperature: 0, num_predict: LENGTH, stop: ["\n"] };
/** Remains of templates, control tokens, control characters and broken UTF-8. */
export const STRAY = /[<>|\uFFFD]|Question|Answer|\[\/?INST|\p{Cc}/u;

interface Asked {
  readonly language: string;
  readonly question: string;
  readonly right: RegExp;
  readonly rules: Language;
  readonly prompt: string;
}
interface Answer {
  readonly text: string;
  readonly ends: boolean;
}
interface Judged {
  readonly ends: boolean;
  readonly language: boolean;
  readonly clean: boolean;
  readonly right: boolean;
}

/** Prints all answers with `isShown`. */
export async function compareAnswers(bench: Bench, isShown: boolean): Promise<void> {
  const asked = Object.entries(QUESTIONS).flatMap(([language, rules]) =>
    rules.questions.map(([question, right]): Asked => {
      const shown = rules.examples.map(([ask, answer]) => `Question: ${ask}\nAnswer: ${answer}\n`);
      return { language, question, right, rules, prompt: `${shown.join("")}Question: ${question}\nAnswer:` };
    }),
  );
  const theirs = await theirAnswers(bench, asked);
  const { answers: ours, templated } = await ourAnswers(bench, asked);
  const judged = [ours, theirs].map((answers) => asked.map((each, i) => judge(each, answers[i]!)));
  if (isShown) {
    for (const [i, { language, question }] of asked.entries()) {
      const marks = judged.map((all) => Object.values(all[i]!).map(Number).join(""));
      console.log([language, question, ours[i]!.text, marks[0], theirs[i]!.text, marks[1]].join(" | "));
    }
  }
  const of = `${asked.length} questions in ${Object.keys(QUESTIONS).length} languages`;
  const least = { ends: 0.99, language: 0.99, clean: 1, right: 0 };
  const measures = {
    ends: "end by themselves",
    language: "in the language asked",
    clean: "without strays",
    right: "right",
  };
  for (const key of ["ends", "language", "clean", "right"] as const) {
    const [a, b] = judged.map((all) => all.filter((each) => each[key]).length);
    const ratio = { of: "ratio", atLeast: 0.95 } as const;
    bench.tell({
      what: of,
      measure: `answers ${measures[key]}`,
      unit: "",
      ours: [a!],
      peer: { name: "llama.cpp", rounds: [b!] },
      goal: key === "right" ? ratio : { of: "value", atLeast: Math.floor(least[key] * asked.length) },
    });
  }
  const equal = asked.filter((_, i) => ours[i]!.text === theirs[i]!.text).length;
  bench.tell({ what: of, measure: "answers equal to llama.cpp's, which rounds otherwise", unit: "", ours: [equal] });
  bench.tell({
    what: of,
    measure: "prompts of as many tokens as the template's text",
    unit: "",
    ours: [templated],
    goal: { of: "value", atLeast: asked.length },
  });
}

function judge({ right, rules }: Asked, { text, ends }: Answer): Judged {
  return {
    ends: ends && text !== "",
    language: rules.script.test(text) && !rules.foreign.test(text),
    clean: !STRAY.test(text),
    right: right.test(text),
  };
}

async function theirAnswers({ peer, file, encode, tokenizer }: Bench, asked: readonly Asked[]): Promise<Answer[]> {
  const answers = await peer.greedy(
    file,
    asked.map(({ prompt }) => encode(prompt)),
    LENGTH,
  );
  return answers.map((ids) => {
    const text = tokenizer.detokenize(ids);
    return { text: text.split("\n")[0]!.trim(), ends: text.includes("\n") || ids.length < LENGTH };
  });
}

async function ourAnswers({ file, encode }: Bench, asked: readonly Asked[]) {
  const hearth = await startHearth();
  try {
    await create(hearth, file);
    const answers: Answer[] = [];
    let templated = 0;
    for (const { rules, question, prompt } of asked) {
      const shown = rules.examples.flatMap(([ask, answer]) => [
        { role: "user", content: ask },
        { role: "assistant", content: answer },
      ]);
      const messages = [...shown, { role: "user", content: question }];
      const reply = await hearth.post("/api/chat", { model: "gemma", stream: false, messages, options: OPTIONS });
      const body = (await reply.json()) as Record<string, any>;
      if (!reply.ok) throw new Error(body["error"]);
      answers.push({ text: body["message"].content.trim(), ends: body["done_reason"] === "stop" });
      templated += Number(body["prompt_eval_count"] === encode(prompt).length);
    }
    return { answers, templated };
  } finally {
    await hearth.stop();
  }
}

async function create(hearth: Hearth, file: string): Promise<void> {
  const modelfile = join(hearth.home, "Modelfile");
  await Bun.write(modelfile, `FROM ${file}\nTEMPLATE """${TEMPLATE}"""\n`);
  const env = { HEARTH_HOST: hearth.url };
  const { code, stderr } = await runHearth(["create", "gemma", "-f", modelfile], { home: hearth.home, env });
  if (code !== 0) throw new Error(stderr);
}
