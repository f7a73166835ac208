/** Questions that a pretrained model answers in a few words if two examples show how: ten facts in ten languages. */

export interface Language {
  readonly examples: readonly (readonly [question: string, answer: string])[];
  /** Questions and right answers, in the order of the facts. */
  readonly questions: readonly (readonly [question: string, right: RegExp])[];
  /** The script: all letters of an answer belong to it. */
  readonly script: RegExp;
  /** Words of a related language that do not belong in an answer. */
  readonly foreign: RegExp;
}

const LATIN = /^[\p{Script=Latin}\P{L}]*$/u;
const ENGLISH = /\b(the|is|are|of|and|it)\b/i;

const table = (text: string): [string, RegExp][] =>
  text
    .trim()
    .split("\n")
    .map((line) => line.split(" | "))
    .map(([question, right]) => [question!.trim(), new RegExp(`(?<!\\d)(?:${right!.trim()})(?!\\d)`, "iu")]);

export const QUESTIONS: Readonly<Record<string, Language>> = {
  en: {
    examples: [
      ["What is the capital of Spain?", "Madrid"],
      ["What colour is snow?", "White"],
    ],
    script: LATIN,
    foreign: /\b(der|die|das|und|le|les|el|los|il|het)\b/i,
    questions: table(`
      What is the capital of Italy? | rome
      What is the capital of Japan? | tokyo
      What is the capital of Egypt? | cairo
      How many months has a year? | 12|twelve
      What colour is grass? | green
      What is the opposite of hot? | cold
      How many legs has a dog? | 4|four
      Which animal barks? | dog
      Which planet is the largest? | jupiter
      Which month comes after June? | july`),
  },
  de: {
    examples: [
      ["Was ist die Hauptstadt von Spanien?", "Madrid"],
      ["Welche Farbe hat Schnee?", "Weiß"],
    ],
    script: LATIN,
    foreign: ENGLISH,
    questions: table(`
      Was ist die Hauptstadt von Italien? | rom
      Was ist die Hauptstadt von Japan? | tok[iy]o
      Was ist die Hauptstadt von Ägypten? | kairo
      Wie viele Monate hat ein Jahr? | 12|zwölf
      Welche Farbe hat Gras? | grün
      Was ist das Gegenteil von heiß? | kalt
      Wie viele Beine hat ein Hund? | 4|vier
      Welches Tier bellt? | hund
      Welcher Planet ist der größte? | jupiter
      Welcher Monat kommt nach Juni? | juli`),
  },
  fr: {
    examples: [
      ["Quelle est la capitale de l'Espagne ?", "Madrid"],
      ["De quelle couleur est la neige ?", "Blanche"],
    ],
    script: LATIN,
    foreign: ENGLISH,
    questions: table(`
      Quelle est la capitale de l'Italie ? | rome
      Quelle est la capitale du Japon ? | tokyo
      Quelle est la capitale de l'Égypte ? | caire
      Combien de mois a une année ? | 12|douze
      De quelle couleur est l'herbe ? | vert
      Quel est le contraire de chaud ? | froid
      Combien de pattes a un chien ? | 4|quatre
      Quel animal aboie ? | chien
      Quelle est la plus grande planète ? | jupiter
      Quel mois vient après juin ? | juillet`),
  },
  es: {
    examples: [
      ["¿Cuál es la capital de Francia?", "París"],
      ["¿De qué color es la nieve?", "Blanca"],
    ],
    script: LATIN,
    foreign: ENGLISH,
    questions: table(`
      ¿Cuál es la capital de Italia? | roma
      ¿Cuál es la capital de Japón? | tokio
      ¿Cuál es la capital de Egipto? | cairo
      ¿Cuántos meses tiene un año? | 12|doce
      ¿De qué color es la hierba? | verde
      ¿Qué es lo contrario de caliente? | fr[ií]o
      ¿Cuántas patas tiene un perro? | 4|cuatro
      ¿Qué animal ladra? | perro
      ¿Cuál es el planeta más grande? | júpiter
      ¿Qué mes viene después de junio? | julio`),
  },
  it: {
    examples: [
      ["Qual è la capitale della Spagna?", "Madrid"],
      ["Di che colore è la neve?", "Bianca"],
    ],
    script: LATIN,
    foreign: ENGLISH,
    questions: table(`
      Qual è la capitale dell'Italia? | roma
      Qual è la capitale del Giappone? | tokyo
      Qual è la capitale dell'Egitto? | cairo
      Quanti mesi ha un anno? | 12|dodici
      Di che colore è l'erba? | verde
      Qual è il contrario di caldo? | freddo
      Quante zampe ha un cane? | 4|quattro
      Quale animale abbaia? | cane
      Qual è il pianeta più grande? | giove
      Quale mese viene dopo giugno? | luglio`),
  },
  pt: {
    examples: [
      ["Qual é a capital da Espanha?", "Madrid"],
      ["De que cor é a neve?", "Branca"],
    ],
    script: LATIN,
    foreign: ENGLISH,
    questions: table(`
      Qual é a capital da Itália? | roma
      Qual é a capital do Japão? | tóquio
      Qual é a capital do Egito? | cairo
      Quantos meses tem um ano? | 12|doze
      De que cor é a relva? | verde
      Qual é o contrário de quente? | frio
      Quantas patas tem um cão? | 4|quatro
      Que animal ladra? | cão|cachorro
      Qual é o maior planeta? | júpiter
      Que mês vem depois de junho? | julho`),
  },
  nl: {
    examples: [
      ["Wat is de hoofdstad van Spanje?", "Madrid"],
      ["Welke kleur heeft sneeuw?", "Wit"],
    ],
    script: LATIN,
    foreign: /\b(the|are|of the|and|der|und)\b/i,
    questions: table(`
      Wat is de hoofdstad van Italië? | rome
      Wat is de hoofdstad van Japan? | tokio
      Wat is de hoofdstad van Egypte? | ca[iï]ro
      Hoeveel maanden heeft een jaar? | 12|twaalf
      Welke kleur heeft gras? | groen
      Wat is het tegenovergestelde van warm? | koud
      Hoeveel poten heeft een hond? | 4|vier
      Welk dier blaft? | hond
      Welke planeet is de grootste? | jupiter
      Welke maand komt na juni? | juli`),
  },
  ru: {
    examples: [
      ["Какая столица Испании?", "Мадрид"],
      ["Какого цвета снег?", "Белый"],
    ],
    script: /^[\p{Script=Cyrillic}\P{L}]*$/u,
    foreign: /[a-z]/i,
    questions: table(`
      Какая столица Италии? | рим
      Какая столица Японии? | токио
      Какая столица Египта? | каир
      Сколько месяцев в году? | 12|двенадцать
      Какого цвета трава? | зел[её]н
      Что противоположно горячему? | холод
      Сколько ног у собаки? | 4|четыре
      Какое животное лает? | собака|п[её]с
      Какая планета самая большая? | юпитер
      Какой месяц идёт после июня? | июль`),
  },
  ja: {
    examples: [
      ["スペインの首都はどこですか？", "マドリード"],
      ["雪は何色ですか？", "白"],
    ],
    script: /^[\p{Script=Hiragana}\p{Script=Katakana}\p{Script=Han}ー\P{L}]*$/u,
    foreign: /[a-z]/i,
    questions: table(`
      イタリアの首都はどこですか？ | ローマ
      日本の首都はどこですか？ | 東京
      エジプトの首都はどこですか？ | カイロ
      一年は何か月ですか？ | 12|１２|十二
      草は何色ですか？ | 緑|みどり
      「暑い」の反対は何ですか？ | 寒|涼|冷
      犬の足は何本ですか？ | 4|４|四
      ワンワンと鳴く動物は何ですか？ | 犬|イヌ|いぬ
      一番大きい惑星は何ですか？ | 木星
      六月の次は何月ですか？ | 7|７|七`),
  },
  zh: {
    examples: [
      ["西班牙的首都是哪里？", "马德里"],
      ["雪是什么颜色的？", "白色"],
    ],
    script: /^[\p{Script=Han}\P{L}]*$/u,
    foreign: /[a-z]/i,
    questions: table(`
      意大利的首都是哪里？ | 罗马
      日本的首都是哪里？ | 东京
      埃及的首都是哪里？ | 开罗
      一年有几个月？ | 12|十二
      草是什么颜色的？ | 绿
      热的反义词是什么？ | 冷|寒
      狗有几条腿？ | 4|四
      什么动物会汪汪叫？ | 狗|犬
      最大的行星是哪一颗？ | 木星
      六月之后是几月？ | 7|七`),
  },
};
