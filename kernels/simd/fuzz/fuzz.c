// fuzz: ops with random shapes and hostile ids, positions, weights and router scores, in a build with sanitizers. Every
// tensor is a block of exactly its own size, so that a read outside of it ends the program. Usage: fuzz SEED ROUNDS, or --broken
#define HOSTED // memset and memcpy are the library's, which the sanitizer watches
#include "../run.c"
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static u64 state;
static u32 any(void) {
  state = state * 6364136223846793005ull + 1442695040888963407ull;
  return (u32)(state >> 33);
}
static int below(int n) { return (int)(any() % (u32)n); }

static void *blocks[64];
static int block_count;
// Memory of exactly that size; freed when the round is over.
static void *block(i64 bytes) {
  void *p = malloc(bytes ? (size_t)bytes : 1);
  if (!p || block_count == 64) exit(2);
  return blocks[block_count++] = p;
}
static void *random_block(i64 bytes) {
  u8 *p = block(bytes);
  for (i64 i = 0; i < bytes; i++) p[i] = (u8)any();
  return p;
}
// Sometimes what is no number.
static f32 *random_floats(i64 count) {
  f32 *p = block(count * 4);
  int hostile = below(8) == 0;
  for (i64 i = 0; i < count; i++) {
    if (hostile && below(16) == 0) {
      u32 bits = any() << 1;
      p[i] = LOAD(f32, &bits);
    } else p[i] = (f32)(i32)(any() % 2001 - 1000) / 500;
  }
  return p;
}
// In bounds, at their ends, and anywhere.
static i32 hostile_index(int length) {
  switch (below(4)) {
    case 0: return (i32)(any() << 1 | (any() & 1));
    case 1: return -1 + below(2) * (length + 1);
    default: return below(length);
  }
}
static const int TYPES_ALL[] = {
#define NUMBER(name, number, ...) number,
  TYPES(NUMBER)
#undef NUMBER
  F32, F16, BF16,
};
// Bytes of what a type's blocks name points of.
static i64 grid_bytes(int type) {
  switch (type) {
    case 16: return 256 * 8;
    case 17: return 512 * 8;
    case 22: return 1024 * 8;
    case 18: return 256 * 4;
    case 21: return 512 * 4;
    case 19:
    case 29: return 2048 * 8;
    default: return 0;
  }
}
static Matrix random_matrix(int n, int rows, int experts, f32 *out) {
  const int type = TYPES_ALL[below(sizeof TYPES_ALL / sizeof *TYPES_ALL)];
  const TypeInfo t = type_info(type);
  const i64 row_bytes = (i64)(n / t.len) * t.bytes;
  Matrix m = {0};
  m.type = type;
  m.rows = m.outDim = rows;
  m.rowBytes = row_bytes;
  m.expertBytes = row_bytes * rows;
  m.data = (u64)random_block(m.expertBytes * experts);
  if (grid_bytes(type)) m.grid = (u64)random_block(grid_bytes(type));
  if (below(2)) m.bias = (u64)random_floats((i64)rows * experts);
  if (below(2)) m.scales = (u64)random_floats(experts);
  m.out = (u64)out;
  return m;
}

enum { ROWS_MAX = 20, OPS_MAX = 12 };
static u8 *records;
static int op_count;
static void *add_op(int kind, int per_row) {
  Head *head = (Head *)(records + op_count++ * RECORD_BYTES);
  *head = (Head){.kind = kind, .rowSet = ROWS_ALL, .perRow = per_row};
  return head;
}

// Look up, turn, add a position, pack, multiply.
static void dense(Pass *p, int rows) {
  const int n = 256 * (1 + below(3)), heads = 1 + below(4), dim = n / 4 / heads * 4 / 4, out_dim = 1 + below(70);
  const int positions = 1 + below(40), pairs = 2 * (1 + below(dim / 4 ? dim / 4 : 1)) / 2;
  f32 *x = block((i64)rows * n * 4), *y = block((i64)rows * out_dim * 4);
  Embed *embed = add_op(OP_EMBED, 1);
  embed->vocab = 1 + below(40);
  embed->table = random_matrix(n, embed->vocab, 1, 0);
  embed->out = (u64)x, embed->dim = n, embed->scale = 1, embed->vectorToken = -1 - below(2), embed->vectorDim = n;
  p->input = (u64)random_floats((i64)rows * n);
  Rope *rope = add_op(OP_ROPE, 1);
  rope->x = (u64)x, rope->dim = n, rope->heads = heads, rope->headDim = dim, rope->rotaryDim = 2 * pairs;
  if (rope->rotaryDim > dim) rope->heads = 0;
  rope->neox = below(2), rope->positions = positions;
  rope->cos = (u64)random_floats((i64)positions * pairs), rope->sin = (u64)random_floats((i64)positions * pairs);
  if (below(2)) {
    i32 *axes = block(pairs * 4);
    for (int i = 0; i < pairs; i++) axes[i] = below(3);
    rope->axes = (u64)axes;
  }
  AddPosition *place = add_op(OP_ADD_POSITION, 1);
  place->x = (u64)x, place->n = n, place->table = random_matrix(n, positions, 1, 0);
  u8 *packed = block((i64)rows * PACKED_BYTES(n));
  Pack *pack = add_op(OP_PACK, 1);
  pack->x = (u64)x, pack->packed = (u64)packed, pack->n = n;
  Linear *linear = add_op(OP_LINEAR, 1);
  linear->x = (u64)x, linear->packed = (u64)packed, linear->n = n, linear->count = 1, linear->inputPerRow = 1;
  linear->floats = below(4) == 0;
  linear->matrices[0] = random_matrix(n, out_dim, 1, y);
}

// Router scores to experts, rows by expert, their products, and the sum.
static void experts(int rows) {
  const int n = 256, count = 1 + below(9), used = 1 + below(count < 4 ? count : 4), out_dim = 1 + below(40);
  f32 *x = random_floats((i64)rows * n), *y = block((i64)rows * used * out_dim * 4);
  i32 *chosen = block((i64)rows * used * 4), *groups = block((2 + 4 * count + rows * used) * 4);
  f32 *shares = block((i64)rows * used * 4);
  groups[0] = groups[1] = 0;
  u8 *packed = block((i64)rows * PACKED_BYTES(n));
  Pack *pack = add_op(OP_PACK, 1);
  pack->x = (u64)x, pack->packed = (u64)packed, pack->n = n;
  Route *route = add_op(OP_ROUTE, 1);
  route->logits = (u64)random_floats((i64)rows * count), route->chosen = (u64)chosen, route->shares = (u64)shares;
  route->experts = count, route->used = used, route->score = below(3), route->normalize = below(2), route->scale = 1;
  route->perExpert = below(2) + 1;
  Group *group = add_op(OP_GROUP, 1);
  group->chosen = (u64)chosen, group->groups = (u64)groups, group->experts = count, group->used = used;
  Linear *linear = add_op(OP_LINEAR, used);
  linear->x = (u64)x, linear->packed = (u64)packed, linear->groups = (u64)groups, linear->n = n, linear->count = 1;
  linear->inputPerRow = 1, linear->floats = below(4) == 0;
  linear->matrices[0] = random_matrix(n, out_dim, count, y);
  Combine *combine = add_op(OP_COMBINE, 1);
  combine->x = (u64)y, combine->shares = (u64)shares, combine->dim = out_dim, combine->used = used;
  combine->out = (u64)block((i64)rows * out_dim * 4);
}

// Keys and values to their places, and attention over them, in every type of cache.
static void attention(Pass *p, int rows) {
  const int kv_heads = 1 + below(3), heads = kv_heads * (1 + below(5)), dim = 1 + below(100), value_dim = 1 + below(100);
  const int filled = FILLED_HEAD(value_dim), ctx = 32 * (1 + below(20)), start = below(ctx - ROWS_MAX), type = below(3);
  u8 *keys = block((i64)kv_heads * ctx * kv_bytes(type, dim)), *values = block((i64)kv_heads * ctx * kv_bytes(type, filled));
  for (i64 i = 0; i < (i64)kv_heads * ctx * kv_bytes(type, dim); i++) keys[i] = 0;
  for (i64 i = 0; i < (i64)kv_heads * ctx * kv_bytes(type, filled); i++) values[i] = 0;
  i32 *cells = block(rows * 4), *ends = block(rows * 4), *chunk = block(16);
  const int span = below(2);
  for (int i = 0; i < rows; i++) cells[i] = start + i, ends[i] = start + (span ? rows : i + 1);
  chunk[0] = 0, chunk[1] = rows, chunk[2] = 0, chunk[3] = rows;
  p->cells = (u64)cells, p->ends = (u64)ends, p->blocks = (u64)chunk, p->blockCount = 1;
  Store *store = add_op(OP_STORE, 1);
  store->k = (u64)random_floats((i64)rows * kv_heads * dim), store->v = (u64)random_floats((i64)rows * kv_heads * value_dim);
  store->keys = (u64)keys, store->values = (u64)values, store->heads = kv_heads, store->headDim = dim;
  store->valueDim = store->valueStride = value_dim, store->ctxLen = ctx, store->kept = 1, store->type = type;
  Attend *attend = add_op(OP_ATTEND, 1);
  attend->q = (u64)random_floats((i64)rows * heads * dim), attend->out = (u64)block((i64)rows * heads * value_dim * 4);
  attend->keys = (u64)keys, attend->values = (u64)values, attend->heads = heads, attend->kvHeads = kv_heads;
  attend->headDim = dim, attend->valueDim = value_dim, attend->ctxLen = ctx, attend->kept = 1, attend->type = type;
  attend->window = below(2) * (1 + below(300)), attend->chunked = below(2), attend->scale = 0.2f, attend->spans = below(3);
  attend->softCap = below(2) ? 5 : 0;
  if (below(2)) attend->sinks = (u64)random_floats(heads);
  if (below(2)) attend->slopes = (u64)random_floats(heads);
}

static void fuzz_round(u32 stamp) {
  const int rows = 1 + below(ROWS_MAX);
  op_count = 0;
  records = aligned_alloc(64, OPS_MAX * RECORD_BYTES);
  memset(records, 0, OPS_MAX * RECORD_BYTES);
  Pass *p = aligned_alloc(64, (sizeof(Pass) + 63) / 64 * 64);
  memset(p, 0, sizeof *p);
  i32 *tokens = block(rows * 4), *positions = block(rows * 12), *slots = block(rows * 4);
  for (int i = 0; i < rows; i++) tokens[i] = hostile_index(40), slots[i] = 0;
  for (int i = 0; i < rows * 3; i++) positions[i] = hostile_index(40);
  p->tokens = (u64)tokens, p->positions = (u64)positions, p->slots = (u64)slots;
  p->stamp = stamp, p->threads = 1, p->spin = 10, p->rows = rows, p->decodeRows = below(rows + 1);
  p->scratchBytes = 1 << 20;
  p->scratch = (u64)aligned_alloc(64, p->scratchBytes);
  switch (below(3)) {
    case 0: dense(p, rows); break;
    case 1: experts(rows); break;
    default: attention(p, rows);
  }
  p->ops = (u64)records, p->opCount = op_count;
  hearth_run(p, 0);
  free(AT(void, p->scratch));
  free(records);
  free(p);
  while (block_count) free(blocks[--block_count]);
}

int main(int count, char **words) {
  if (count > 1 && !strcmp(words[1], "--broken")) { // what a sanitizer is for: this ends the program
    const f32 *x = block(40);
    return (int)sum(LOAD(vf, x + 8));
  }
  const u64 seed = count > 1 ? strtoull(words[1], 0, 10) : 1;
  const int rounds = count > 2 ? atoi(words[2]) : 1000;
  for (int i = 0; i < rounds; i++) {
    state = (seed + (u64)i) * 0x9e3779b97f4a7c15ull; // so that one round can be had again
    fuzz_round((u32)i + 1);
  }
  printf("%d rounds from seed %llu\n", rounds, seed);
  return 0;
}
