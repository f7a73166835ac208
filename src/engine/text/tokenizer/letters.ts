/**
 * Contents of character classes without a Unicode property. Written as escapes: an editor that normalises text would
 * turn the Kelvin sign into a K and break the ranges.
 */
const raw = String.raw;

/** Cased letters as of Unicode 10, which DeepSeek LLM's pattern lists one by one. */
export const CASED_LETTERS: string = [
  raw`A-Za-z\u00B5\u00C0-\u00D6\u00D8-\u00F6\u00F8-\u01BA\u01BC-\u01BF\u01C4-\u0293\u0295-\u02AF\u0370-\u0373`,
  raw`\u0376\u0377\u037B-\u037D\u037F\u0386\u0388-\u038A\u038C\u038E-\u03A1\u03A3-\u03F5\u03F7-\u0481\u048A-\u052F`,
  raw`\u0531-\u0556\u10A0-\u10C5\u13A0-\u13F5\u13F8-\u13FD\u1C90-\u1CBA\u1CBD-\u1CBF\u1D00-\u1D2B\u1D6B-\u1D77`,
  raw`\u1D79-\u1D9A\u1E00-\u1F15\u1F18-\u1F1D\u1F20-\u1F45\u1F48-\u1F4D\u1F50-\u1F57\u1F59\u1F5B\u1F5D`,
  raw`\u1F5F-\u1F7D\u1F80-\u1FB4\u1FB6-\u1FBC\u1FBE\u1FC2-\u1FC4\u1FC6-\u1FCC\u1FD0-\u1FD3\u1FD6-\u1FDB`,
  raw`\u1FE0-\u1FEC\u1FF2-\u1FF4\u1FF6-\u1FFC\u2102\u2107\u210A-\u2113\u2115\u2119-\u211D\u2124\u2126\u2128`,
  raw`\u212A-\u212D\u212F-\u2134\u2139\u213C-\u213F\u2145-\u2149\u214E\u2183\u2184\u2C00-\u2C7B\u2C7E-\u2CE4`,
  raw`\u2CEB-\u2CEE\u2CF2\u2CF3\uA640-\uA66D\uA680-\uA69B\uA722-\uA76F\uA771-\uA787\uA78B-\uA78E\uAB70-\uABBF`,
  raw`\uFB00-\uFB06\uFB13-\uFB17\uFF21-\uFF3A\uFF41-\uFF5A\u{10400}-\u{1044F}\u{104B0}-\u{104D3}`,
  raw`\u{104D8}-\u{104FB}\u{10C80}-\u{10CB2}\u{10CC0}-\u{10CF2}\u{118A0}-\u{118DF}\u{1E900}-\u{1E943}`,
].join("");

/** Han by the definition of `unicode_cpt_is_han` in llama.cpp's unicode.cpp, which differs from `\p{Script=Han}`. */
export const HAN: string = [
  raw`\u3400-\u4DBF\u4E00-\u9FFF\uF900-\uFAFF`,
  raw`\u{20000}-\u{2A6DF}\u{2A700}-\u{2EBEF}\u{2F800}-\u{2FA1F}`,
].join("");

/** Han in WordPiece's definition: `is_chinese_char` in llama-vocab.cpp, with the gap of Hugging Face's tokenizers. */
export const HAN_WORD_PIECE: string = [
  raw`\u3400-\u4DBF\u4E00-\u9FFF\uF900-\uFAFF`,
  raw`\u{20000}-\u{2A6DF}\u{2A700}-\u{2B81F}\u{2B920}-\u{2CEAF}\u{2F800}-\u{2FA1F}`,
].join("");

/** Scripts that AFMoE separates: Han, kana, Thai, Lao, Khmer, Myanmar, Hangul. */
export const ASIAN: string = [
  raw`\u4E00-\u9FFF\u3400-\u4DBF\u8C48-\uFAFF\u2F00-\u2FDF`,
  raw`\u3040-\u30FF\uFF65-\uFF9F`,
  raw`\u0E40-\u0EFF\u1780-\u17FF\u1000-\u109F\uAA60-\uAA7F\uA9E0-\uA9FF`,
  raw`\uAC00-\uD7AF\u1100-\u11FF`,
].join("");
