// Random numbers, blocks of exactly their own size, and matrices.
static u64 state;
static u32 any(void) {
  state = state * 6364136223846793005ull + 1442695040888963407ull;
  return (u32)(state >> 33);
}
static int below(int n) { return (int)(any() % (u32)n); }

static void *blocks[128];
static int block_count;
// Memory of exactly that size; freed when the round is over.
static void *block(i64 bytes) {
  void *p = malloc(bytes ? (size_t)bytes : 1);
  if (!p || block_count == 128) exit(2);
  return blocks[block_count++] = p;
}
static void *random_block(i64 bytes) {
  u8 *p = block(bytes);
  for (i64 i = 0; i < bytes; i++) p[i] = (u8)any();
  return p;
}
// Sometimes NaN, or so small that it has few bits.
static f32 *random_floats(i64 count) {
  f32 *p = block(count * 4);
  const int kind = below(8), hostile = kind == 0, tiny = kind == 1;
  for (i64 i = 0; i < count; i++) {
    if (hostile && below(16) == 0) {
      u32 bits = any() << 1;
      p[i] = LOAD(f32, &bits);
    } else p[i] = (f32)(i32)(any() % 2001 - 1000) * (tiny ? 1e-44f : 0.002f);
  }
  return p;
}
// In bounds, at the bounds, and anywhere.
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
// Bytes of a type's grid.
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
// A matrix for products, possibly interleaved.
static Matrix random_factor(int n, int rows, int experts, f32 *out) {
  Matrix m = random_matrix(n, rows, experts, out);
  if (below(4) || (experts > 1 && rows % INTERLEAVED_ROWS)) return m;
  const i64 all = ((i64)rows * experts + INTERLEAVED_ROWS - 1) / INTERLEAVED_ROWS * INTERLEAVED_ROWS;
  m.type = TYPE_q8_0 + INTERLEAVED_FLOATS;
  m.rowBytes = n / 32 * 34;
  m.expertBytes = m.rowBytes * rows;
  m.data = (u64)random_block(m.rowBytes * all);
  return m;
}

// The same, or kept as panels.
static Matrix random_product(int n, int rows, int experts, f32 *out) {
  Matrix m = random_factor(n, rows, experts, out);
  if (below(6)) return m;
  m.type = NARROW_MATRIX + (below(2) ? F32 : F16);
  m.rowBytes = n * (m.type == NARROW_MATRIX + F32 ? 4 : 2);
  m.expertBytes = m.rowBytes * ((rows + PANEL_ROWS - 1) / PANEL_ROWS * PANEL_ROWS);
  m.data = (u64)random_block(m.expertBytes * experts);
  return m;
}
