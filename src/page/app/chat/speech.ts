/**
 * Reads answers aloud by the browser. Uses only voices of this device: others send the text to the browser's vendor.
 */
import { signal, type ReadonlySignal } from "@preact/signals";
import type { Token, Tokens } from "marked";
import { blocksOf } from "../markdown/blocks.ts";

/** Some browsers stop in the middle of a longer text. */
const PIECE_CHARS = 220;

export interface Speech {
  readonly canSpeak: ReadonlySignal<boolean>;
  /** Id of the message being read. */
  readonly message: ReadonlySignal<string | undefined>;
  speak(message: string, markdown: string): void;
  stop(): void;
}

/**
 * @param synthesis undefined in browsers without it
 * @param language of the page
 */
export function makeSpeech(synthesis: SpeechSynthesis | undefined, language: () => string): Speech {
  const voices = signal<readonly SpeechSynthesisVoice[]>([]);
  const canSpeak = signal(false);
  const message = signal<string | undefined>(undefined);
  const look = (): void => {
    voices.value = (synthesis?.getVoices() ?? []).filter(({ localService }) => localService);
    canSpeak.value = voices.value.length > 0;
  };
  look();
  synthesis?.addEventListener?.("voiceschanged", look); // some browsers load their voices late
  const stop = (): void => {
    message.value = undefined;
    synthesis?.cancel();
  };
  return {
    canSpeak,
    message,
    stop,
    speak(id, markdown) {
      stop();
      const text = spokenText(blocksOf(markdown));
      const lang = languageOf(text, language());
      const voice = voiceFor(voices.peek(), lang);
      const pieces = piecesOf(text);
      if (!synthesis || pieces.length === 0) return;
      message.value = id;
      for (const [i, piece] of pieces.entries()) {
        const utterance = new SpeechSynthesisUtterance(piece);
        utterance.lang = voice?.lang ?? lang;
        if (voice) utterance.voice = voice;
        const isLast = i === pieces.length - 1;
        utterance.onend = () => void (isLast && message.peek() === id && (message.value = undefined));
        utterance.onerror = () => void (message.peek() === id && (message.value = undefined));
        synthesis.speak(utterance);
      }
    },
  };
}

/** The text of blocks, without code, tables of symbols and URLs. */
export function spokenText(tokens: readonly Token[]): string {
  return tokens
    .map(spoken)
    .filter((text) => text.trim() !== "")
    .join("\n");
}

function spoken(token: Token): string {
  if (token.type === "code" || token.type === "html" || token.type === "hr" || token.type === "space") return "";
  if (token.type === "list") return (token as Tokens.List).items.map(({ tokens }) => spokenText(tokens)).join("\n");
  if (token.type === "table") {
    const { header, rows } = token as Tokens.Table;
    return [header, ...rows].map((row) => row.map(({ tokens }) => inline(tokens)).join(", ")).join("\n");
  }
  if (token.type === "blockquote") return spokenText((token as Tokens.Blockquote).tokens);
  const { tokens } = token as { tokens?: Token[] };
  return tokens ? inline(tokens) : String((token as { text?: unknown }).text ?? "");
}

const inline = (tokens: readonly Token[]): string =>
  tokens
    .map((token) => {
      const { tokens: inside, text, type } = token as { tokens?: Token[]; text?: string; type: string };
      if (type === "html") return "";
      if (type === "br") return "\n";
      return inside ? inline(inside) : (text ?? "");
    })
    .join("");

/** Pieces that end at the end of a sentence. */
export function piecesOf(text: string): string[] {
  const sentences = text.match(/[^.!?。！？\n]+[.!?。！？]*\s*|\n/gu) ?? [];
  const pieces: string[] = [];
  let piece = "";
  for (const sentence of sentences.flatMap((each) => each.match(/.{1,220}(\s|$)|.{1,220}/gsu) ?? [])) {
    if (piece.length + sentence.length > PIECE_CHARS) {
      pieces.push(piece);
      piece = "";
    }
    piece += sentence;
  }
  return [...pieces, piece].map((each) => each.trim()).filter((each) => /[\p{L}\p{N}]/u.test(each));
}

/**
 * Scripts that identify a language, or a language that readers of the script know. Japanese is tested before Chinese,
 * because it contains both scripts.
 */
const SCRIPTS: readonly (readonly [script: RegExp, language: string])[] = [
  [/[\p{Script=Hiragana}\p{Script=Katakana}]/gu, "ja"],
  [/\p{Script=Hangul}/gu, "ko"],
  [/\p{Script=Han}/gu, "zh"],
  [/\p{Script=Cyrillic}/gu, "ru"],
  [/\p{Script=Greek}/gu, "el"],
  [/\p{Script=Arabic}/gu, "ar"],
  [/\p{Script=Hebrew}/gu, "he"],
  [/\p{Script=Devanagari}/gu, "hi"],
  [/\p{Script=Thai}/gu, "th"],
];

/** Languages that share the script of another one. */
const ALSO: Readonly<Record<string, readonly string[]>> = {
  ru: ["uk", "bg", "sr", "be"],
  ar: ["fa", "ur"],
  hi: ["mr"],
};

/** The language of a text by its script; for Latin letters, the language of the page. */
export function languageOf(text: string, page: string): string {
  const start = text.slice(0, 2000);
  const letters = start.match(/\p{L}/gu)?.length ?? 0;
  const code = page.split("-")[0]!.toLowerCase();
  const isOf = (language: string): boolean => language === code || (ALSO[language]?.includes(code) ?? false);
  const found = SCRIPTS.find(([script, language]) => {
    const share = (start.match(script)?.length ?? 0) / Math.max(1, letters);
    return share > (language === "ja" ? 0.1 : 0.3);
  });
  if (found) return isOf(found[1]) ? page : found[1];
  return SCRIPTS.some(([, language]) => isOf(language)) ? "en" : page;
}

function voiceFor(voices: readonly SpeechSynthesisVoice[], lang: string): SpeechSynthesisVoice | undefined {
  const code = (each: string): string => each.split(/[-_]/)[0]!.toLowerCase();
  const fitting = voices.filter((voice) => code(voice.lang) === code(lang));
  return fitting.find((voice) => voice.lang === lang) ?? fitting.find((voice) => voice.default) ?? fitting[0];
}
