// fill: PANEL_ROWS rows of weights, unpacked and transposed, a unit at a time.
//
// A panel has words of four bytes of a row, interleaved by row, so that a register holds one word of each of its rows.
// Whole units of the types that most files have are transposed as they are stored, and unpacked then; others are
// unpacked row by row first.
#pragma once
#include "types.h"

typedef struct {
  u8 *words; // (n/4, PANEL_ROWS, 4)
  f32 *s, *m; // (groups, PANEL_ROWS); m if `how_of` says MINS
  f32 *d; // (units, PANEL_ROWS), or 0: scales of units, whose groups have whole numbers as `s` (put_factors)
  Unit *units; // (W), of rows being unpacked
  int shift; // sums begin with −2^shift · Σx
  int dots; // AVX-VNNI, I8MM or AMX if used, else 0; for AVX-VNNI signed words are shifted to 0 … 255
  int exact; // 1: minimums are stored as they are, even of a type whose weights move to the middle
  int by16; // as in TypeInfo
} Panel;
// Types of whole units, whose groups have whole numbers as scales.
INL int has_factors(int type) {
  return W == 8 && NARROW && (type == TYPE_q4_k || type == TYPE_q5_k || type == TYPE_q6_k);
}

#define PANEL_BYTES(n) (FILLED(n) * PANEL_ROWS + FILLED(n) / 16 * PANEL_ROWS * 8)
INL Panel panel_at(u8 *scratch, int n, TypeInfo t, int features) {
  f32 *s = (f32 *)(scratch + FILLED(n) * PANEL_ROWS);
  Unit *units = (Unit *)(scratch + PANEL_BYTES(n));
  f32 *m = s + FILLED(n) / (t.by16 ? 16 : 32) * PANEL_ROWS;
  const int dots = features & (FEATURE_AVXVNNI | FEATURE_I8MM | FEATURE_AMX);
  return (Panel){scratch, s, m, 0, units, t.shift < 0 ? t.bits - 1 : t.shift, dots, 0, t.by16};
}
// For prompts: groups of some types keep their whole numbers, and units the scales of these.
INL Panel prompt_panel_at(u8 *scratch, int n, int type, int features) {
  const TypeInfo t = type_info(type);
  Panel panel = panel_at(scratch, n, t, features);
  if (has_factors(type)) panel.d = panel.m + (t.by16 ? 0 : FILLED(n) / 32 * PANEL_ROWS);
  return panel;
}
// Returns whether sums must begin with the part that minimums subtract, because they would not fit 16 bits otherwise.
INL int takes_off(TypeInfo t) { return SHIFTED && !t.is_signed && t.shift >= 0; }
INL int moves_to_middle(TypeInfo t) { return SHIFTED && NARROW && t.shift < 0 && t.bits > 4; }

// Index of the unit's word at i.
INL int word_at(int i) {
#if defined(__AVX512VNNI__)
  return i / 2 % 8 * 8 + i / 16 * 2 + i % 2;
#else
  return i;
#endif
}
// Addresses to prefetch: each step fetches `each` 256ths of a byte.
typedef struct {
  const u8 *from;
  i64 each;
} Ahead;
INL void fetch_step(Ahead next, i64 i) {
  const i64 end = (i + 1) * next.each >> 8;
  for (i64 at = (i * next.each >> 8) & -64; at < end; at += 64) __builtin_prefetch(next.from + at, 0, 2);
}

// whole units: r is the first of W rows of the panel; middle or m of 0: no minimum is stored

INL void put_word(u8 *words, int word, int r, vi v) { STORE(words + (word * PANEL_ROWS + r) * 4, v); }
INL void put_scales(f32 *scales, f32 *mins, int group, int r, vf s, f32 middle) {
  STORE(scales + group * PANEL_ROWS + r, s);
  if (mins) STORE(mins + group * PANEL_ROWS + r, s * middle);
}
// Half floats of W rows. With AVX2 they meet in general registers: a panel is filled at the rate of vector operations.
INL vf halves_of(const u8 *p, i64 row_bytes) {
#if W == 8
  u64 d[2];
  UNROLL for (int half = 0; half < 2; half++, p += 4 * row_bytes) {
    d[half] = LOAD(u16, p) | (u64)LOAD(u16, p + row_bytes) << 16 | (u64)LOAD(u16, p + 2 * row_bytes) << 32 |
              (u64)LOAD(u16, p + 3 * row_bytes) << 48;
    __asm__("" : "+r"(d[half]));
  }
  typedef u64 u64x2 VEC(16);
  const u64x2 all = {d[0], d[1]};
  return CONVERT((vhalf)all, vf);
#else
  u16 d[W];
  UNROLL for (int i = 0; i < W; i++) d[i] = LOAD(u16, p + i * row_bytes);
  return halves(d);
#endif
}
// The low halves of words, as half floats.
INL vf low_halves(vi words) {
  typedef u16 narrow VEC(2 * W);
  u16 d[W];
  STORE(d, CONVERT(words, narrow));
  return halves(d);
}
#define LOW_NIBBLES 0x0f0f0f0f

NOINL void fill_q4_0(u8 *words, f32 *s, f32 *m, const u8 *p, i64 row_bytes) {
  for (int g = 0; g < 8; g++, p += 18, words += 32 * PANEL_ROWS) for (int r = 0; r < PANEL_ROWS; r += W) {
    const u8 *from = p + r * row_bytes;
    vi v[4];
    turn_words(from + 2, row_bytes, v);
    UNROLL for (int i = 0; i < 4; i++) {
      put_word(words, i, r, v[i] & LOW_NIBBLES);
      put_word(words, 4 + i, r, v[i] >> 4 & LOW_NIBBLES);
    }
    put_scales(s, m, g, r, halves_of(from, row_bytes), 8);
  }
}
#if W == 8
// Blocks of 32 weights that end with their nibbles, and what they have beside a scale.
enum { FIFTH_BITS = 1, LEVELS = 2, MINIMUMS = 4, BARE = 8 };
// Bits 4 · word … 4 · word + 3 of a block's fifth bits, as bit 4 of each byte.
INL vi fifth_of(vi bits, int word) { return ((bits >> 4 * word) & 15) * 0x02040810 & 0x10101010; }
// middle: minimums in scales, or what weights' own minimums grow by
NOINL void fill_nibbles(int has, i64 bytes, u8 *words, f32 *s, f32 *m, f32 middle, const u8 *p, i64 row_bytes, i32 flip) {
  for (int g = 0; g < 8; g++, p += bytes, words += 32 * PANEL_ROWS) for (int r = 0; r < PANEL_ROWS; r += W) {
    const u8 *from = p + r * row_bytes;
    vi v[8];
    turn_words(from + bytes - 16, row_bytes, v);
    UNROLL for (int i = 0; i < 4; i++) {
      v[4 + i] = v[i] >> 4 & LOW_NIBBLES;
      v[i] &= LOW_NIBBLES;
    }
    if (has & FIFTH_BITS) {
      i32 each[W];
      UNROLL for (int i = 0; i < W; i++) each[i] = LOAD(i32, from + i * row_bytes + bytes - 20);
      UNROLL for (int i = 0; i < 8; i++) v[i] |= fifth_of(LOAD(vi, each), i);
    }
    if (has & LEVELS) UNROLL for (int i = 0; i < 8; i++) v[i] = (vi)look_up(IQ4_LEVELS, (u8x32)v[i]) ^ flip;
    UNROLL for (int i = 0; i < 8; i++) put_word(words, i, r, v[i]);
    if (has & BARE) continue;
    const vf d = halves_of(from, row_bytes);
    if (!(has & MINIMUMS)) put_scales(s, m, g, r, d, middle);
    else {
      vf least = -halves_of(from + 2, row_bytes);
      if (middle) least = FMA(d, splat(-middle), least);
      STORE(s + g * PANEL_ROWS + r, d);
      STORE(m + g * PANEL_ROWS + r, least);
    }
  }
}
#endif
NOINL void fill_q8_0(u8 *words, f32 *s, f32 *m, const u8 *p, i64 row_bytes, i32 flip) {
  for (int g = 0; g < 8; g++, p += 34, words += 32 * PANEL_ROWS) for (int r = 0; r < PANEL_ROWS; r += W) {
    const u8 *from = p + r * row_bytes;
    UNROLL for (int half = 0; half < 8; half += 4) {
      vi v[4];
      turn_words(from + 2 + half * 4, row_bytes, v);
      UNROLL for (int i = 0; i < 4; i++) put_word(words, half + i, r, v[i] ^ (SIGNED_UNITS ? flip : (i32)0x80808080));
    }
    put_scales(s, m, g, r, halves_of(from, row_bytes), 128);
  }
}
// The bytes of words less `zero`, times d, for four groups.
NOINL void put_bytes(f32 *to, vi words, i32 zero, vf d) {
  for (int i = 0; i < 4; i++, to += PANEL_ROWS, words >>= 8) STORE(to, CONVERT((words & 255) - zero, vf) * d);
}
// Types of 4 bits, or of 5 with fifth bits. middle: what minimums grow by, in scales
INL void fill_k(int fifth, u8 *words, f32 *s, f32 *m, f32 middle, const u8 *p, i64 row_bytes) {
  for (int r = 0; r < PANEL_ROWS; r += W, p += W * row_bytes) {
    vi v[4], bits[8]; // first d and dmin, then the bytes of scales and minimums
    turn_words(p, row_bytes, v);
    const vf d = low_halves(v[0]), dmin = low_halves(v[0] >> 16);
    put_bytes(s + r, v[1] & 0x3f3f3f3f, 0, d);
    put_bytes(s + 4 * PANEL_ROWS + r, (v[3] & LOW_NIBBLES) | (v[1] >> 2 & 0x30303030), 0, d);
    put_bytes(m + r, v[2] & 0x3f3f3f3f, 0, dmin);
    put_bytes(m + 4 * PANEL_ROWS + r, (v[3] >> 4 & LOW_NIBBLES) | (v[2] >> 2 & 0x30303030), 0, dmin);
    if (middle) for (int at = r; at < 8 * PANEL_ROWS; at += PANEL_ROWS)
      STORE(m + at, FMA(LOAD(vf, s + at), splat(-middle), LOAD(vf, m + at)));
    if (fifth) UNROLL for (int i = 0; i < 8; i += 4) turn_words(p + 16 + i * 4, row_bytes, bits + i);
    for (int j = 0; j < 8; j++) {
      turn_words(p + 16 + 32 * fifth + j * 16, row_bytes, v);
      vi high[4];
      UNROLL for (int i = 0; i < 4; i++) {
        high[i] = v[i] >> 4 & LOW_NIBBLES;
        v[i] &= LOW_NIBBLES;
      }
      if (fifth) UNROLL for (int i = 0; i < 4; i++) {
        const vi two = bits[j % 2 * 4 + i] >> j / 2 * 2;
        v[i] |= two << 4 & 0x10101010;
        high[i] |= two << 3 & 0x10101010;
      }
      UNROLL for (int i = 0; i < 4; i++) {
        const int word = j / 2 * 16 + j % 2 * 4 + i;
        put_word(words, word, r, v[i]);
        put_word(words, word + 8, r, high[i]);
      }
    }
  }
}
NOINL void fill_q4_k(u8 *words, f32 *s, f32 *m, const u8 *p, i64 row_bytes) { fill_k(0, words, s, m, 0, p, row_bytes); }
#if W == 8
NOINL void fill_q5_k(u8 *words, f32 *s, f32 *m, f32 middle, const u8 *p, i64 row_bytes) {
  fill_k(1, words, s, m, middle, p, row_bytes);
}
NOINL void fill_iq4_xs(u8 *words, f32 *s, const u8 *p, i64 row_bytes, i32 flip) {
  for (int r = 0; r < PANEL_ROWS; r += W) {
    vi v[4]; // d and the high bits of the scales, their low nibbles
    turn_words(p + r * row_bytes, row_bytes, v);
    const vf d = low_halves(v[0]);
    v[0] >>= 16;
    for (int g = 0; g < 8; g++, v[0] >>= 2, v[1] >>= 4)
      STORE(s + g * PANEL_ROWS + r, CONVERT((v[1] & 15 | (v[0] & 3) << 4) - 32, vf) * d);
  }
  fill_nibbles(LEVELS | BARE, 16, words, s, 0, 0, p + 8, row_bytes, flip);
}
#endif
NOINL void fill_q6_k(u8 *words, f32 *s, f32 *m, const u8 *p, i64 row_bytes) {
  for (int r = 0; r < PANEL_ROWS; r += W, p += W * row_bytes) {
    vi v[4], a[4], b[4];
    const vf d = halves_of(p + 208, row_bytes);
    turn_words(p + 192, row_bytes, v);
    UNROLL for (int j = 0; j < 4; j++) {
      const i64 at = j * 4 * PANEL_ROWS + r;
      put_bytes(s + at, v[j] ^ (i32)0x80808080, 128, d);
      if (m) put_bytes(m + at, v[j] ^ (i32)0x80808080, 128, d * 32);
    }
    for (int j = 0; j < 4; j++) {
      const u8 *from = p + j / 2 * 64 + j % 2 * 16;
      turn_words(p + 128 + j * 16, row_bytes, v);
      turn_words(from, row_bytes, a);
      turn_words(from + 32, row_bytes, b);
      UNROLL for (int i = 0; i < 4; i++) {
        const int word = j / 2 * 32 + j % 2 * 4 + i;
        put_word(words, word, r, (a[i] & LOW_NIBBLES) | (v[i] << 4 & 0x30303030));
        put_word(words, word + 8, r, (b[i] & LOW_NIBBLES) | (v[i] << 2 & 0x30303030));
        put_word(words, word + 16, r, (a[i] >> 4 & LOW_NIBBLES) | (v[i] & 0x30303030));
        put_word(words, word + 24, r, (b[i] >> 4 & LOW_NIBBLES) | (v[i] >> 2 & 0x30303030));
      }
    }
  }
}

// --- any unit ---

// Rows after the last of the matrix repeat it.
NOINL void fill_any(const Panel *to, int type, const u8 *w, i64 row_bytes, int rows, i64 b, int n, const i8 *grid, i32 flip) {
  const TypeInfo t = type_info(type);
  const i64 line = PANEL_ROWS * 4;
  const int groups = t.by16 ? 16 : 8;
  const int end = takes_off(t) ? 80 : 96; // words of a unit: 64 of values, 16 scales, 16 minimums
  for (int r = 0; r < PANEL_ROWS; r += W) {
    for (int i = 0; i < W; i++) {
      Unit *u = to->units + i;
      unpack_unit(type, w + MIN(r + i, rows - 1) * row_bytes, b, n, grid, u);
      if (moves_to_middle(t) && !to->exact) u->m = FMA(u->s, (f32x16){} - (f32)(1 << to->shift), u->m);
    }
    for (int j = 0; j < end; j += 4) {
      vi v[4];
      if (j >= 64 && j % 16 >= groups) continue;
      turn_words((u8 *)to->units + j * 4, sizeof(Unit), v);
      u8 *at = j < 64 ? to->words + word_at(j) * line : (u8 *)(j < 80 ? to->s : to->m) + j % 16 * line;
      const i64 gap = (j < 64 ? word_at(2) : 2) * line;
      UNROLL for (int i = 0; i < 4; i++) STORE(at + i / 2 * gap + i % 2 * line + r * 4, j < 64 ? v[i] ^ flip : v[i]);
    }
  }
}
#if W == 8
// The bytes of words less `zero`, for four groups: twice as words of 16 bits for `dot_words`, or as floats.
NOINL void put_factors(int as_floats, f32 *to, vi words, i32 zero) {
  for (int i = 0; i < 4; i++, to += PANEL_ROWS, words >>= 8) {
    const vi v = (words & 255) - zero;
    STORE(to, as_floats ? (vi)CONVERT(v, vf) : (v & 0xffff) | v << 16);
  }
}
// Replaces the scales of a unit's groups by whole numbers and the scales of these.
NOINL void factor_scales(const Panel *to, int type, const u8 *p, i64 row_bytes) {
  const int as_floats = to->dots;
  for (int r = 0; r < PANEL_ROWS; r += W, p += W * row_bytes) {
    vi v[4];
    f32 *s = to->s + r;
    turn_words(type == TYPE_q6_k ? p + 192 : p, row_bytes, v);
    if (type == TYPE_q6_k) {
      STORE(to->d + r, halves_of(p + 208, row_bytes));
      for (int j = 0; j < 4; j++) put_factors(as_floats, s + j * 4 * PANEL_ROWS, v[j] ^ (i32)0x80808080, 128);
    } else {
      STORE(to->d + r, low_halves(v[0]));
      put_factors(as_floats, s, v[1] & 0x3f3f3f3f, 0);
      put_factors(as_floats, s + 4 * PANEL_ROWS, (v[3] & LOW_NIBBLES) | (v[1] >> 2 & 0x30303030), 0);
    }
  }
}
// Copies a block of `rows` rows, and the last to the rest of a panel.
NOINL void copy_blocks(u8 *to, const u8 *p, i64 row_bytes, int rows, i64 bytes) {
  for (int r = 0; r < PANEL_ROWS; r++, to += bytes) {
    const u8 *from = p + MIN(r, rows - 1) * row_bytes;
    for (i64 i = 0; i + 16 < bytes; i += 16) STORE(to + i, LOAD(u8x16, from + i));
    STORE(to + bytes - 16, LOAD(u8x16, from + bytes - 16));
  }
}
#endif
// A whole unit of PANEL_ROWS rows. Returns 0 for types that are not transposed as they are stored.
NOINL int fill_whole(const Panel *to, int type, const u8 *p, i64 row_bytes, i32 flip) {
  const TypeInfo t = type_info(type);
  f32 *m = takes_off(t) || t.is_signed ? 0 : to->m;
  const f32 middle __attribute__((unused)) = moves_to_middle(t) && !to->exact ? 1 << to->shift : 0;
  switch (type) {
    case TYPE_q4_0: fill_q4_0(to->words, to->s, m, p, row_bytes); return 1;
    case TYPE_q8_0: fill_q8_0(to->words, to->s, m, p, row_bytes, flip); return 1;
    case TYPE_q4_k: fill_q4_k(to->words, to->s, m, p, row_bytes); break;
    case TYPE_q6_k: fill_q6_k(to->words, to->s, m, p, row_bytes); break;
#if W == 8
    case TYPE_q4_1: fill_nibbles(MINIMUMS, 20, to->words, to->s, m, 0, p, row_bytes, 0); return 1;
    case TYPE_q5_0: fill_nibbles(FIFTH_BITS, 22, to->words, to->s, m, 16, p, row_bytes, 0); return 1;
    case TYPE_q5_1: fill_nibbles(FIFTH_BITS | MINIMUMS, 24, to->words, to->s, m, middle, p, row_bytes, 0); return 1;
    case TYPE_iq4_nl: fill_nibbles(LEVELS, 18, to->words, to->s, m, 0, p, row_bytes, flip); return 1;
    case TYPE_iq4_xs: fill_iq4_xs(to->words, to->s, p, row_bytes, flip); return 1;
    case TYPE_q5_k: fill_q5_k(to->words, to->s, m, middle, p, row_bytes); break;
#endif
    default: return 0;
  }
#if W == 8
  if (to->d) factor_scales(to, type, p, row_bytes);
#endif
  return 1;
}
// Unit b of rows of n weights, the first row at w.
NOINL void fill_unit(const Panel *to, int type, const u8 *w, i64 row_bytes, int rows, i64 b, int n, const i8 *grid) {
  const TypeInfo t = type_info(type);
  const i32 flip = AVXVNNI && to->dots && t.is_signed ? 0x80808080 : 0;
  const u8 *p = w + b * (UNIT / t.len) * t.bytes;
#if W == 8
  u8 copies[PANEL_ROWS * 210]; // q6_k
  if (to->d && rows < PANEL_ROWS) {
    copy_blocks(copies, p, row_bytes, rows, t.bytes);
    fill_whole(to, type, copies, t.bytes, flip);
    return;
  }
#endif
  const int whole = rows == PANEL_ROWS && b * UNIT + UNIT <= n;
  if (!whole || !fill_whole(to, type, p, row_bytes, flip)) fill_any(to, type, w, row_bytes, rows, b, n, grid, flip);
}
// Fills the panel with all units. Prefetches a part of `next` with each group of a row.
NOINL void fill_panel(Panel to, int type, const u8 *w, i64 row_bytes, int rows, int n, const i8 *grid, Ahead next) {
  const int groups = type_info(type).by16 ? 16 : 8;
  next.each *= groups;
  for (i64 b = 0; b * UNIT < n; b++) {
    fetch_step(next, b);
    fill_unit(&to, type, w, row_bytes, rows, b, n, grid);
    to.words += UNIT * PANEL_ROWS;
    to.s += groups * PANEL_ROWS;
    to.m += groups * PANEL_ROWS;
    if (to.d) to.d += PANEL_ROWS;
  }
}

