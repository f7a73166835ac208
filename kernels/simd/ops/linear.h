// linear: W (outDim, n) · x (n, tokens) → (tokens, outDim), for all rows or for the rows of each expert.
//
// A chunk is PANEL_ROWS rows of a matrix. Decode rows are multiplied in place, prompt rows by panels: the kind of a row
// decides, never the number of rows, because the two methods round differently.
#pragma once
#include "../several.h"
#include "../floats.h"
#include "../interleaved_floats.h"
#include "../panel.h"
#include "../pass.h"

#define RUN_ROWS 256 // matrix rows per step, in place
// Added to the type of a matrix with few columns that was copied as panels, (n, PANEL_ROWS).
enum { NARROW_MATRIX = 1024 };

// The rows multiplied by a matrix: pairs of a row and one of its experts, or rows without experts.
typedef struct {
  const i32 *pairs; // 0: 0, 1, 2, …
  int decode, prompt; // counts; decode rows come first
} Members;
typedef struct {
  const u8 *w;
  const i8 *grid;
  const f32 *bias;
  f32 scale;
  int row, rows;
} Part;

INL int pair_at(Members m, int i) { return m.pairs ? m.pairs[i] : i; }
INL int input_of(const Linear *op, int pair) { return op->inputPerRow == 1 ? pair / op->head.perRow : pair; }

INL Packed input_at(const Linear *op, Members m, int i) {
  return packed_row(AT(u8, op->packed) + (i64)input_of(op, pair_at(m, i)) * PACKED_BYTES(op->n), op->n);
}

INL f32 *output_at(const Thread *t, const Matrix *m, Part part, int pair) {
  return floats_at(t, m->out) + (i64)pair * m->outDim + part.row;
}
// out += or = values · scale + bias
INL void put_values(const Thread *t, const Linear *op, const Matrix *m, Part part, int pair, const f32 *values) {
  f32 *out = output_at(t, m, part, pair);
  for (int r = 0; r < part.rows; r += W) {
    const int some = part.rows - r;
    vf v = load_some(values + r, some) * part.scale;
    if (part.bias) v += load_some(part.bias + part.row + r, some);
    if (op->accumulate) v = load_some(out + r, some) + v;
    store_some(out + r, v, some);
  }
}

// Several decode tokens, one by one.
NOINL void dots_each(const Thread *t, const Linear *op, const Matrix *m, Members members, Part part, int first, int count) {
  const TypeInfo type = type_info(m->type);
  Packed x[DOTS_SINGLE_MAX];
  f32 out[8 * PANEL_ROWS];
  for (int i = 0; i < count; i++) x[i] = input_at(op, members, first + i);
  const int most = 8 * PANEL_ROWS / count;
  for (const int end = part.row + part.rows; part.row < end; part.row += part.rows, part.w += part.rows * m->rowBytes) {
    part.rows = MIN(most, end - part.row);
    const int halves = t->p.features & FEATURE_HALVES && part.rows % 2 == 0;
    dot(type, m->type, part.w, m->rowBytes, part.rows, halves, part.grid, x, count, op->n, out, most);
    for (int i = 0; i < count; i++) put_values(t, op, m, part, pair_at(members, first + i), out + i * most);
  }
}

// Prefetches the destination of `count` tokens before they are multiplied.
INL void fetch_out(const Thread *t, const Matrix *m, Members members, Part part, int first, int count) {
  for (int i = 0; i < count; i++) {
    const f32 *out = output_at(t, m, part, pair_at(members, first + i));
    UNROLL for (int r = 0; r < PANEL_ROWS; r += 16) __builtin_prefetch(out + r, 1);
  }
}

#if W == 16
// Several tokens together: each row is unpacked once.
NOINL void dots_beside(const Thread *t, const Linear *op, const Matrix *m, Members members, Part part, int first, int count) {
  const TypeInfo type = type_info(m->type);
  f32 out[DOTS_TOKENS * PANEL_ROWS];
  Packed x[DOTS_TOKENS + 1];
  for (int i = 0; i < count; i++) x[i] = input_at(op, members, first + i);
  x[count] = x[count - 1];
  for (const int end = part.row + part.rows; part.row < end; part.row += part.rows) {
    part.rows = MIN(PANEL_ROWS, end - part.row);
    for (int r = 0; r < part.rows; r += DOTS_ROWS, part.w += DOTS_ROWS * m->rowBytes) {
      const int stride = part.rows - r == 1 ? 0 : m->rowBytes; // with fewer rows, a row is repeated
      dots(type, m->type, part.w, stride, part.grid, x, count, op->n, out + r);
    }
    for (int i = 0; i < count; i++) put_values(t, op, m, part, pair_at(members, first + i), out + i * PANEL_ROWS);
  }
}
#else
// Several tokens together: each unit of rows is unpacked once.
NOINL void dots_beside(const Thread *t, const Linear *op, const Matrix *m, Members members, Part part, int first, int count) {
  const TypeInfo type = type_info(m->type);
  Packed x[DOTS_TOKENS + BESIDE_TILE];
  for (int i = 0; i < count + BESIDE_TILE; i++) x[i] = input_at(op, members, first + MIN(i, count - 1));
  const int vnni = t->p.features & FEATURE_AVXVNNI;
  Panel unit = panel_at(t->scratch, UNIT, type, vnni);
  unit.exact = 1;
  const int how = beside_how(type, vnni), tiles = (count + BESIDE_TILE - 1) / BESIDE_TILE, groups = BESIDE_GROUPS(type.by16);
  const i64 filled = FILLED(op->n), bytes = PANEL_ROWS * m->rowBytes, some = bytes / (filled / UNIT * tiles);
  const i64 lines = (some / 64 + groups) / groups;
  BesideSums sums[DOTS_TOKENS / BESIDE_TILE];
  for (const int end = part.row + part.rows; part.row < end; part.row += part.rows, part.w += bytes) {
    part.rows = MIN(PANEL_ROWS, end - part.row);
    for (int i = 0; i < tiles; i++) for (int g = 0; g < groups; g++)
      UNROLL for (int at = 0; at < BESIDE_TILE * PANEL_REGS; at++) sums[i][g][at / PANEL_REGS][at % PANEL_REGS] = (vf){};
    const u8 *next = part.w + bytes;
    fetch_out(t, m, members, part, first, count);
    for (i64 b = 0; b * UNIT < filled; b++) {
      fill_unit(&unit, m->type, part.w, m->rowBytes, part.rows, b, op->n, part.grid);
      for (int i = 0; i < tiles; i++, next += some)
        multiply_beside(how, count - i * BESIDE_TILE, &unit, b, filled, x + i * BESIDE_TILE, next, lines, sums[i]);
    }
    for (int i = 0; i < count; i += BESIDE_TILE) {
      f32 out[BESIDE_TILE * PANEL_ROWS];
      const int there = MIN(BESIDE_TILE, count - i);
      beside_totals(type.by16, there, sums[i / BESIDE_TILE], out);
      for (int k = 0; k < there; k++) put_values(t, op, m, part, pair_at(members, first + i + k), out + k * PANEL_ROWS);
    }
  }
}
#endif

NOINL void linear_dots(const Thread *t, const Linear *op, const Matrix *m, Members members, Part part) {
  const int end = part.row + part.rows;
  for (; part.row < end; part.w += part.rows * m->rowBytes, part.row += part.rows) {
    part.rows = MIN(members.decode > DOTS_TOKENS ? RUN_ROWS : part.rows, end - part.row);
    for (int first = 0; first < members.decode; first += DOTS_TOKENS) {
      const int count = MIN(DOTS_TOKENS, members.decode - first);
      (count > DOTS_SINGLE_MAX ? dots_beside : dots_each)(t, op, m, members, part, first, count);
    }
  }
}

// Prefetches the rows that this thread will probably take next, a part at each of `all` steps.
INL Ahead share_ahead(const Thread *t, const Matrix *m, Part part, int first, int count, int all, i64 steps) {
  const i64 bytes = PANEL_ROWS * m->rowBytes;
  return (Ahead){part.w + t->p.threads * bytes + bytes * first / all, (bytes * count << 8) / (all * steps)};
}

NOINL void linear_panel(const Thread *t, const Linear *op, const Matrix *m, Members members, Part part) {
  TypeInfo type = type_info(m->type);
  Panel panel = prompt_panel_at(t->scratch, op->n, m->type, t->p.features);
  const int tile = tile_tokens(panel), all = members.prompt + tile; // a panel takes about as long as a tile
  const i64 steps = FILLED(op->n) / (type.by16 ? 16 : 32);
  fill_panel(panel, m->type, part.w, m->rowBytes, part.rows, op->n, part.grid, share_ahead(t, m, part, 0, tile, all, steps));
  for (int first = 0; first < members.prompt; first += tile) {
    const int count = MIN(tile, members.prompt - first);
    Packed x[TILE_MAX];
    vf out[TILE_MAX][PANEL_REGS];
    for (int i = 0; i < tile; i++) x[i] = input_at(op, members, members.decode + first + MIN(i, count - 1));
    fetch_out(t, m, members, part, members.decode + first, count);
    multiply_tile(type, count, panel, op->n, x, share_ahead(t, m, part, tile + first, count, all, steps), out);
    for (int i = 0; i < count; i++)
      put_values(t, op, m, part, pair_at(members, members.decode + first + i), (f32 *)out[i]);
  }
}

// Tokens one by one, in float32.
NOINL void float_dots(const Thread *t, const Linear *op, const Matrix *m, Members members, Part part) {
  const int all = members.decode, n = op->n;
  const f32 *x = floats_at(t, op->x);
  int type = m->type;
  i64 row_bytes = m->rowBytes;
  const u8 *w = part.w;
  if (!is_float(type) || (type != F32 && all > 1)) {
    for (int r = 0; r < part.rows; r++)
      unpack_floats(type, w + r * row_bytes, n, part.grid, (f32 *)t->scratch + (i64)r * n);
    w = t->scratch;
    type = F32;
    row_bytes = (i64)n * 4;
  }
  for (int first = 0; first < all; first += FLOAT_TOKENS) {
    const int count = MIN(FLOAT_TOKENS, all - first);
    const f32 *inputs[FLOAT_TOKENS];
    f32 out[FLOAT_TOKENS * PANEL_ROWS];
    for (int i = 0; i < count; i++) inputs[i] = x + (i64)input_of(op, pair_at(members, first + i)) * n;
    for (int r = 0; r < part.rows; r += FLOAT_ROWS) {
      const u8 *rows[FLOAT_ROWS];
      const int some = MIN(FLOAT_ROWS, part.rows - r);
      for (int i = 0; i < some; i++) rows[i] = w + (r + i) * row_bytes;
      multiply_floats(type, some, count, out + r, PANEL_ROWS, rows, inputs, n, m->rows <= SMALL_MATRIX_ROWS && n <= SHORT_ROW);
    }
    for (int i = 0; i < count; i++) put_values(t, op, m, part, pair_at(members, first + i), out + i * PANEL_ROWS);
  }
}

// Prompts with float weights, as words if the record says so.
NOINL void float_panel(const Thread *t, const Linear *op, const Matrix *m, Members members, Part part) {
  const int as_words = WORD_PANELS && op->words && !(m->type & NARROW_MATRIX);
  const u8 *inputs = as_words ? AT(u8, op->words) : (const u8 *)floats_at(t, op->x);
  const i64 bytes = as_words ? WORD_BYTES(op->n) : 4 * (i64)op->n;
  f32 *panel = (f32 *)t->scratch;
  const int as_halves = m->type == NARROW_MATRIX + F16 && members.prompt == 1;
  if (as_halves || m->type == NARROW_MATRIX + F32) panel = (f32 *)part.w;
  else if (m->type & NARROW_MATRIX)
    for (i64 i = 0; i < (i64)op->n * PANEL_ROWS; i += W) STORE(panel + i, halves((const u16 *)part.w + i));
  else fill_floats(panel, m->type, part.w, m->rowBytes, part.rows, op->n, part.grid, as_words);
  for (int first = 0; first < members.prompt; first += FLOAT_TILE) {
    const int count = MIN(FLOAT_TILE, members.prompt - first), from = members.decode + first;
    const u8 *x[FLOAT_TILE];
    vf out[FLOAT_TILE][PANEL_REGS];
    const int needed = count > 1 || as_words ? FLOAT_TILE : 1;
    for (int i = 0; i < needed; i++) x[i] = inputs + input_of(op, pair_at(members, from + MIN(i, count - 1))) * bytes;
    fetch_out(t, m, members, part, from, count);
    fetch_step(share_ahead(t, m, part, first, count, members.prompt, 1), 0);
    if (as_halves) panel_tile_one_f16(panel, op->n, (const f32 *const *)x, out);
    else multiply_panel(count, as_words, t->p.features & FEATURE_AVXVNNI, panel, op->n, x, out);
    for (int i = 0; i < count; i++) put_values(t, op, m, part, pair_at(members, from + i), (f32 *)out[i]);
  }
}

// Decode and prompt tokens alike.
NOINL void linear_interleaved(const Thread *t, const Linear *op, const Matrix *m, Members members, Part part) {
#if defined(__wasm__)
  const int all = members.decode + members.prompt;
  for (const int end = part.row + part.rows; part.row < end; part.row += part.rows, part.w += PANEL_ROWS * m->rowBytes) {
    part.rows = MIN(PANEL_ROWS, end - part.row);
    for (int first = 0; first < all; first += INTERLEAVED_TOKENS) {
      const int count = MIN(INTERLEAVED_TOKENS, all - first);
      Packed x[INTERLEAVED_TOKENS];
      f32 out[INTERLEAVED_TOKENS * PANEL_ROWS];
      for (int i = 0; i < count; i++) x[i] = input_at(op, members, first + i);
      multiply_interleaved(count, part.w, op->n, x, out, PANEL_ROWS);
      for (int i = 0; i < count; i++) put_values(t, op, m, part, pair_at(members, first + i), out + i * PANEL_ROWS);
    }
  }
#endif
}

INL const f32 *floats_of(const Thread *t, const Linear *op, Members m, int i) {
  return floats_at(t, op->x) + (i64)input_of(op, pair_at(m, i)) * op->n;
}

// One token, in float32.
NOINL void linear_alone(const Thread *t, const Linear *op, const Matrix *m, Members members, Part part) {
  const f32 *x = floats_of(t, op, members, 0);
  f32 out[MAX(8 * ALONE_GROUPS, W)];
  for (const int end = part.row + part.rows; part.row < end; part.w += part.rows * m->rowBytes, part.row += part.rows) {
    const int some = end - part.row >= 8 * ALONE_GROUPS;
    part.rows = some ? 8 * ALONE_GROUPS : MIN(8, end - part.row);
    (some ? alone_some : alone_one)(part.w, 8 * m->rowBytes, op->n, x, out);
    put_values(t, op, m, part, pair_at(members, 0), out);
  }
}

// Float32 products for decode and prompt tokens together. Each token gets the same bits as it would alone.
NOINL void linear_pairs(const Thread *t, const Linear *op, const Matrix *m, Members members, Part part) {
  const int all = members.decode + members.prompt;
  f32 *panel = (f32 *)t->scratch;
  for (const int end = part.row + part.rows; part.row < end; part.w += part.rows * m->rowBytes, part.row += part.rows) {
    part.rows = MIN(PAIRS_ROWS, end - part.row);
    fill_pairs(panel, part.w, 8 * m->rowBytes, part.rows, op->n);
    for (int first = 0; first < all; first += FLOAT_TILE) {
      const int count = MIN(FLOAT_TILE, all - first);
      const f32 *x[FLOAT_TILE];
      f32 out[FLOAT_TILE * PAIRS_STRIDE];
      for (int i = 0; i < FLOAT_TILE; i++) x[i] = floats_of(t, op, members, first + MIN(i, count - 1));
      for (int r = 0; r < PAIRS_ROWS; r += W)
        (count <= FLOAT_TILE / 2 ? pairs_half : pairs_whole)(panel + r * (i64)op->n, op->n, x, out + r);
      for (int i = 0; i < count; i++) put_values(t, op, m, part, pair_at(members, first + i), out + i * PAIRS_STRIDE);
    }
  }
}

INL int units_of(const Matrix *m) { return (m->rows + PANEL_ROWS - 1) / PANEL_ROWS; }
INL int units_in(const Linear *op) {
  int units = 0;
  for (int i = 0; i < op->count; i++) units += units_of(&op->matrices[i]);
  return units;
}

// Chunks `chunk` … + count: ordered by expert, then by matrix.
NOINL void linear_chunks(const Thread *t, const Linear *op, int chunk, int count) {
  const int units = units_in(op);
  while (count > 0) {
    int expert = 0, unit = chunk % units, which = 0;
    Members members = {0, decode_rows_of(t, &op->head), 0};
    members.prompt = rows_of(t, &op->head) - members.decode;
    if (op->groups) {
      const i32 *groups = AT(i32, op->groups), *entry = groups + 2 + chunk / units * 4;
      expert = entry[0];
      members = (Members){groups + entry[1], entry[2], entry[3]};
    }
    while (unit >= units_of(&op->matrices[which])) unit -= units_of(&op->matrices[which++]);
    const Matrix *m = &op->matrices[which];
    const int narrow = m->type & NARROW_MATRIX, floats = op->floats || narrow || is_float(m->type);
    const int run = floats || members.prompt ? 1 : MIN(count, units_of(m) - unit);
    const int row = unit * PANEL_ROWS;
    Part part = {AT(u8, m->data) + expert * m->expertBytes + row * m->rowBytes, AT(i8, m->grid),
                 m->bias ? AT(f32, m->bias) + (i64)expert * m->rows : 0, m->scales ? AT(f32, m->scales)[expert] : 1, row, MIN(run * PANEL_ROWS, m->rows - row)};
    if (floats) {
      // A prompt's last chunk of one token counts as a decode row: without rounded activations it has the same bits.
      if (narrow) members = (Members){members.pairs, 0, members.decode + members.prompt};
      else if (op->floats) members = (Members){members.pairs, members.decode + members.prompt, 0};
      if (members.decode) float_dots(t, op, m, members, part);
      if (members.prompt) float_panel(t, op, m, members, part);
    } else if (m->type & INTERLEAVED_FLOATS)
      (members.decode + members.prompt == 1 ? linear_alone : linear_pairs)(t, op, m, members, part);
    else if (WIDE && m->type & INTERLEAVED) linear_interleaved(t, op, m, members, part);
    else {
      if (members.decode) linear_dots(t, op, m, members, part);
      if (members.prompt) linear_panel(t, op, m, members, part);
    }
    chunk += run;
    count -= run;
  }
}
