/** Sentences to speak, and the count of wrong words. The sentences are the project's own. */
export const SPOKEN: readonly string[] = [
  "The train to the coast leaves at half past nine.",
  "Please write your name at the top of the page.",
  "We are going to the market to buy apples and bread.",
  "The weather will be warm and sunny tomorrow afternoon.",
  "She opened the window because the room was too hot.",
  "My brother works in a large hospital near the river.",
  "The children played in the garden until it was dark.",
  "Can you tell me how to get to the library?",
  "He bought a new computer for his small company.",
  "The meeting was moved to the second week of March.",
  "I have never seen so many birds in one place.",
  "They built a house of stone on top of the hill.",
  "The doctor said that she needs to rest for three days.",
  "There is a good restaurant on the other side of the street.",
  "Water boils at one hundred degrees.",
  "The teacher asked the students to read the first chapter.",
  "Our neighbors have two dogs and a black cat.",
  "The ship arrived in the harbor early in the morning.",
  "He forgot his umbrella and came home completely wet.",
  "Thank you for your help, I will call you next week.",
];

const wordsOf = (text: string): string[] => text.toLowerCase().match(/[a-z0-9']+/g) ?? [];

/** The words of a text, and the number of insertions, omissions and replacements in its transcript. */
export function wordErrors(said: string, transcript: string): { readonly words: number; readonly wrong: number } {
  const [from, to] = [wordsOf(transcript), wordsOf(said)];
  let row = Array.from({ length: to.length + 1 }, (_, i) => i);
  for (const [i, word] of from.entries()) {
    const next = [i + 1];
    for (const [k, wanted] of to.entries())
      next.push(Math.min(next[k]! + 1, row[k + 1]! + 1, row[k]! + (word === wanted ? 0 : 1)));
    row = next;
  }
  return { words: to.length, wrong: row.at(-1)! };
}
