/** The process of `library-answers.ts`: questions on standard input, answers on standard output. */
import { env, pipeline } from "@huggingface/transformers";
import type { LibraryAnswers, LibraryQuestions } from "./library-answers.ts";

const { llama, encoder, prompt, messages, inputs, tokens } = (await Bun.stdin.json()) as LibraryQuestions;
env.allowRemoteModels = false;

const writer = await pipeline("text-generation", llama, { dtype: "fp32" });
const { tokenizer } = writer;
const write = async (text: string): Promise<string> => {
  const [made] = (await writer(text, {
    max_new_tokens: tokens,
    do_sample: false,
    return_full_text: false,
    add_special_tokens: false,
  })) as unknown as { generated_text: string }[];
  return made!.generated_text;
};
const chat = tokenizer.apply_chat_template(messages as { role: string; content: string }[], {
  tokenize: false,
  add_generation_prompt: true,
}) as string;
const count = (text: string): number => tokenizer.encode(text, { add_special_tokens: false }).length;

const embedder = await pipeline("feature-extraction", encoder, { dtype: "fp32" });
const embeddings: number[][] = [];
for (const input of inputs) {
  const tensor = await embedder(input, { pooling: "mean", normalize: true });
  embeddings.push([...(tensor.data as Float32Array)]);
}

const answers: LibraryAnswers = {
  text: await write(prompt),
  promptTokens: count(prompt),
  chatText: await write(chat),
  chatTokens: count(chat),
  embeddings,
};
console.log(JSON.stringify(answers));
