/** Texts for comparisons on real weights: the same on every run, because recorded answers belong to them. */
import { makeRng, type Rng } from "../../src/engine/text/rng.ts";

/** A few sentences of each language, by its code. */
export const LANGUAGES: Readonly<Record<string, string>> = {
  ar: "وصل القطار إلى المحطة في الساعة ٧:٣٠ صباحًا. هل تريد كوبًا من الشاي؟ كتبت المعلّمة رسالة طويلة إلى أختها.",
  bg: "Влакът пристигна на гарата в 7:30 сутринта. Искате ли чаша чай? Учителката написа дълго писмо на сестра си.",
  bn: "ট্রেনটি সকাল ৭টা ৩০ মিনিটে স্টেশনে পৌঁছেছে। আপনি কি এক কাপ চা চান? শিক্ষিকা তাঁর বোনকে একটি লম্বা চিঠি লিখলেন।",
  cs: "Vlak přijel na nádraží v 7:30 ráno. Dáte si šálek čaje? Učitelka napsala své sestře dlouhý dopis.",
  de: "Der Zug kam um 7:30 Uhr am Bahnhof an. Möchten Sie eine Tasse Tee? Die Lehrerin schrieb ihrer Schwester einen langen Brief über Straßenbahnen.",
  el: "Το τρένο έφτασε στον σταθμό στις 7:30 το πρωί. Θέλετε ένα φλιτζάνι τσάι; Η δασκάλα έγραψε ένα μακρύ γράμμα στην αδελφή της.",
  en: "The train reached the station at 7:30 in the morning. Would you like a cup of tea? The teacher wrote her sister a long letter, didn't she?",
  es: "El tren llegó a la estación a las 7:30 de la mañana. ¿Quiere una taza de té? ¡La maestra le escribió una larga carta a su hermana!",
  fa: "قطار ساعت ۷:۳۰ صبح به ایستگاه رسید. آیا یک فنجان چای می‌خواهید؟ معلم نامه‌ای بلند برای خواهرش نوشت.",
  fi: "Juna saapui asemalle kello 7.30 aamulla. Haluaisitteko kupin teetä? Opettaja kirjoitti sisarelleen pitkän kirjeen.",
  fr: "Le train est arrivé à la gare à 7 h 30 du matin. Voulez-vous une tasse de thé ? L’institutrice a écrit une longue lettre à sa sœur, « à l’été ».",
  he: "הרכבת הגיעה לתחנה בשעה 7:30 בבוקר. האם תרצו כוס תה? המורה כתבה לאחותה מכתב ארוך.",
  hi: "ट्रेन सुबह ७:३० बजे स्टेशन पर पहुँची। क्या आप एक कप चाय लेंगे? शिक्षिका ने अपनी बहन को एक लंबा पत्र लिखा।",
  hu: "A vonat reggel 7:30-kor érkezett az állomásra. Kér egy csésze teát? A tanítónő hosszú levelet írt a nővérének.",
  id: "Kereta tiba di stasiun pukul 7.30 pagi. Apakah Anda mau secangkir teh? Guru itu menulis surat panjang kepada saudara perempuannya.",
  it: "Il treno è arrivato alla stazione alle 7:30 del mattino. Vuole una tazza di tè? La maestra ha scritto una lunga lettera a sua sorella; perché?",
  ja: "列車は午前７時30分に駅に着きました。お茶を一杯いかがですか？先生は妹に長い手紙を書いた。カタカナとひらがな、漢字。",
  ko: "기차는 오전 7시 30분에 역에 도착했습니다. 차 한 잔 드시겠어요? 선생님은 여동생에게 긴 편지를 썼다.",
  nl: "De trein kwam om 7.30 uur 's ochtends op het station aan. Wilt u een kopje thee? De lerares schreef haar zus een lange brief.",
  pl: "Pociąg przyjechał na stację o 7:30 rano. Czy chce pan filiżankę herbaty? Nauczycielka napisała długi list do siostry, źdźbło po źdźble.",
  pt: "O comboio chegou à estação às 7h30 da manhã. Quer uma chávena de chá? A professora escreveu uma longa carta à irmã.",
  ru: "Поезд прибыл на станцию в 7:30 утра. Хотите чашку чая? Учительница написала сестре длинное письмо — о ёлках.",
  sv: "Tåget kom till stationen klockan 7.30 på morgonen. Vill ni ha en kopp te? Lärarinnan skrev ett långt brev till sin syster.",
  ta: "ரயில் காலை 7:30 மணிக்கு நிலையத்தை அடைந்தது. ஒரு கோப்பை தேநீர் வேண்டுமா? ஆசிரியை தன் சகோதரிக்கு நீண்ட கடிதம் எழுதினார்.",
  th: "รถไฟมาถึงสถานีเวลา 7:30 น. คุณต้องการชาสักถ้วยไหม ครูเขียนจดหมายยาวถึงน้องสาวของเธอ",
  tr: "Tren sabah 7.30'da istasyona vardı. Bir fincan çay ister misiniz? Öğretmen kız kardeşine uzun bir mektup yazdı; İstanbul'dan ığdır'a.",
  uk: "Потяг прибув на станцію о 7:30 ранку. Бажаєте чашку чаю? Учителька написала сестрі довгого листа про їжаків.",
  vi: "Tàu đến ga lúc 7 giờ 30 sáng. Bạn có muốn một tách trà không? Cô giáo đã viết một bức thư dài cho em gái mình.",
  zh: "火车早上7点30分到达车站。您要一杯茶吗？老师给她妹妹写了一封长信。繁體中文：圖書館裡很安靜。",
};

/** Lines of programs and data. */
export const CODE: readonly string[] = [
  "def fib(n):\n    a, b = 0, 1\n    while n > 0:\n        a, b, n = b, a + b, n - 1\n    return a\n",
  'fn main() {\n\tlet v: Vec<u8> = vec![0x7f, 1_000];\n\tprintln!("{:?} {}", v, v.len());\n}\n',
  "SELECT name, COUNT(*) AS n\n  FROM users u\n  JOIN orders o ON o.user_id = u.id\n WHERE o.total >= 19.99\n GROUP BY 1;\n",
  'for (let i = 0; i < 10; i++) { console.log(`${i}: ${"x".repeat(i)}`); } // done',
  '{"id": 17, "tags": ["a", "b\\n"], "price": -1.5e-3, "ok": true, "none": null}',
  '#include <stdio.h>\nint main(void) {\n  printf("%d\\n", 1 << 4);\n  return 0;\n}\n',
  '<div class="row"><a href="/a?b=1&amp;c=2">A&nbsp;B</a><!-- note --></div>',
  "server:\n  - name: web-1\n    port: 8080\n    env:\n      KEY: 'v a l'\n",
  "git rebase -i HEAD~3 && ls -la | grep '^d' > out.txt 2>&1",
  "| a | b |\n|---|:-:|\n| 1 | **x** |\n\n1. *one*\n2. `two`\n\n> quoted\n",
  "E = mc^2, \\int_0^\\infty e^{-x^2}\\,dx = \\frac{\\sqrt{\\pi}}{2}",
  "\u001b[31mred\u001b[0m\ttab\u000bvertical\fform\r\nline",
];

/** Characters that tokenizers get wrong. */
const ODD: readonly string[] = [
  ..."😀 👍🏽 👩‍👩‍👧‍👦 🏳️‍🌈 🇩🇪 ❤️ ☕ 1️⃣ 🧑🏿‍🚀 🫠".split(" "),
  ..."\u0000\u0001\u0007\b\u007f\u0080\u0085\u009f\u00a0\u00ad\u200b\u200c\u200d\u2028\u2029\u202e\u2060\ufeff\ufffd",
  ..."\t\n\r\v\f ",
  ..."  ", // wide spaces
  "   ",
  "                                  ",
  "\n\n\n",
  "\t\t\t\t",
  "▁",
  "▁▁",
  "<0x41>",
  "<unk>",
  "<eos>",
  "<start_of_turn>",
  "[multimodal]",
  "<unused7>",
  "e\u0301",
  "é",
  "ﬁ",
  "Ａ１",
  "𝒳",
  "𐍈",
  "𠜎",
  "ꙮ",
  "\u0e33",
  "ក្ស",
  "ሀሎ",
  "ᏣᎳᎩ",
  "007",
  "3.14159265358979",
  "1,000,000",
  "----------",
  "......",
  "=========",
];

const HIGHEST = 0x10ffff;

/** `count` texts of between a few and some hundred characters, in all languages, in code, and in mixtures of them. */
export function mixedTexts(count: number, seed = 35): string[] {
  const rng = makeRng(seed);
  const whole = [...Object.values(LANGUAGES), ...CODE].map((text) => [...text]);
  return Array.from({ length: count }, (_, i) => {
    const text = whole[i % whole.length]!;
    if (i < whole.length) return text.join("");
    const parts = Array.from({ length: 1 + below(rng, 4) }, () => partOf(rng, text, whole));
    return parts.join(pick(rng, ["", "", " ", "\n"]));
  });
}

function partOf(rng: Rng, text: readonly string[], all: readonly (readonly string[])[]): string {
  const kind = below(rng, 8);
  if (kind < 4) return slice(rng, text);
  if (kind === 4) return slice(rng, pick(rng, all));
  if (kind === 5) return Array.from({ length: 1 + below(rng, 3) }, () => pick(rng, ODD)).join("");
  if (kind === 6) return Array.from({ length: 1 + below(rng, 6) }, () => character(rng)).join("");
  return pick(rng, ODD).repeat(1 + below(rng, 5));
}

function slice(rng: Rng, text: readonly string[]): string {
  const start = below(rng, text.length);
  return text.slice(start, start + 1 + below(rng, 60)).join("");
}

/** Any character except half a surrogate pair. */
function character(rng: Rng): string {
  const code = below(rng, pick(rng, [0x80, 0x800, 0x10000, HIGHEST]));
  return code >= 0xd800 && code < 0xe000 ? "\ufffd" : String.fromCodePoint(code);
}

const below = (rng: Rng, end: number): number => Math.floor(rng.float() * end);
const pick = <T>(rng: Rng, list: readonly T[]): T => list[below(rng, list.length)]!;

/** Beginnings of texts, to be continued: one of each language, the code, and several kinds of English. */
export const PROMPTS: readonly string[] = [
  ...Object.values(LANGUAGES),
  ...CODE.slice(0, 11),
  "Once upon a time, there was a little girl who lived near the sea with her grandfather and an old grey cat.",
  "The capital of France is Paris. The capital of Italy is Rome. The capital of Japan is Tokyo. The capital of Spain is",
  "Water boils at 100 degrees Celsius at sea level because the pressure of its vapour then equals that of the air.",
  "Q: How many legs does a spider have?\nA: Eight.\nQ: How many legs does an insect have?\nA: Six.\nQ: How many wheels has a car?\nA:",
  "Dear Sir or Madam,\n\nI am writing to apply for the position of librarian that you advertised last week in the",
  "Ingredients: 200 g flour, 2 eggs, 300 ml milk, a pinch of salt. Method: first, mix the flour and the eggs in a",
  "1, 1, 2, 3, 5, 8, 13, 21, 34, 55, 89, 144, 233, 377, 610, 987, 1597, 2584, 4181,",
  "English: good morning. French: bonjour. German: guten Morgen. Spanish: buenos días. Italian: buongiorno. Portuguese:",
  "In 1969, two astronauts walked on the Moon while a third stayed in orbit; all three came back to the Earth and",
  "The quick brown fox jumps over the lazy dog. The quick brown fox jumps over the lazy dog. The quick brown fox",
];

/** Texts that a pretrained model continues with a few words; each contains examples. */
export const ASKED: readonly string[] = [
  ["What is the capital of Spain?", "Madrid", "What is the capital of Italy?"],
  ["How many days has a week?", "Seven", "How many months has a year?"],
  ["What colour is snow?", "White", "What colour is grass?"],
  ["Wie heißt die Hauptstadt von Frankreich?", "Paris", "Wie heißt die Hauptstadt von Österreich?"],
  ["¿De qué color es la nieve?", "Blanca", "¿De qué color es la sangre?"],
  ["Quelle est la capitale de l'Espagne ?", "Madrid", "Quelle est la capitale de l'Italie ?"],
  ["日本の首都はどこですか？", "東京", "フランスの首都はどこですか？"],
  ["Столица Франции?", "Париж", "Столица Японии?"],
].map(([question, answer, next]) => `Question: ${question}\nAnswer: ${answer}\nQuestion: ${next}\nAnswer:`);

/** English sentences, some with similar meanings. */
export const SENTENCES: readonly string[] = [
  ..."A cat sleeps on the sofa.|A kitten naps on the couch.|The dog chases a ball in the park.".split("|"),
  ..."A puppy runs after a toy outside.|She is playing the violin.|A woman plays a stringed instrument.".split("|"),
  ..."He cooks pasta for dinner.|The man prepares an evening meal.|It will rain tomorrow.".split("|"),
  ..."Showers are expected the next day.|The stock market fell sharply.|Shares lost much of their value.".split("|"),
  ..."The train was two hours late.|Our flight has been cancelled.|How do I reset my password?".split("|"),
  ..."I cannot log in to my account.|The river flooded the village.|Water covered the streets of the town.".split("|"),
  ..."Bees make honey from nectar.|Insects pollinate flowers.|The committee rejected the proposal.".split("|"),
  ..."Parliament voted against the law.|He broke his leg while skiing.|She was injured on the slope.".split("|"),
  ..."Two plus two is four.|Calculus is a branch of mathematics.|The museum opens at nine.".split("|"),
  ..."The gallery is closed on Mondays.|I love this film.|This movie was terrible.".split("|"),
  ..."Install the package with one command.|The program crashes at startup.".split("|"),
];

/** Texts for encoders: languages, code, sentences, and texts at the limits of tokenization and of the context. */
export const EMBEDDED: readonly string[] = [
  ...SENTENCES,
  ...Object.values(LANGUAGES),
  ...CODE,
  "a",
  "Hello World! naïve CAFÉ İstanbul ẞ ﬁ Ａ ΟΔΟΣ",
  "x".repeat(150),
  "the cat ".repeat(80),
  "the cat ".repeat(200),
  "don't can't — “quotes” … 3.14 $5 50% a_b #tag @me",
  "你好world こんにちは",
  "\u0000null\u0007bell",
  "👍🏽 emoji 😀",
  "soft\u00adhyphen zero\u200bwidth e\u0301 \u1e69",
];
