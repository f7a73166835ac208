// fuzz: ops with random shapes and hostile ids, positions, weights and router scores, in a build with sanitizers. Every
// tensor is a block of exactly its own size, so that a read outside it ends the program. Usage: fuzz SEED ROUNDS, or
// --broken
#define HOSTED // memset and memcpy are the library's, which the sanitizer watches
#include "../run.c"
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include "random.h"

enum { ROWS_MAX = 20, OPS_MAX = 32, SLOTS = 3 };
static u8 *records;
static int op_count;
static void *add_op(int kind, int per_row) {
  Head *head = (Head *)(records + op_count++ * RECORD_BYTES);
  *head = (Head){.kind = kind, .rowSet = ROWS_ALL, .perRow = per_row};
  return head;
}

// Rows of x as words if the level has them; 0 if prompts are to be multiplied as floats.
static u64 random_words(const f32 *x, int rows, int n) {
  if (!WORD_PANELS || below(2)) return 0;
  PackWords *pack = add_op(OP_PACK_WORDS, 1);
  pack->x = (u64)x, pack->n = n;
  return pack->words = (u64)block((i64)rows * WORD_BYTES(n));
}

// Embed, RoPE, add a position, pack, multiply.
static void dense(Pass *p, int rows) {
  const int n = 256 * (1 + below(3)), heads = 1 + below(4), dim = n / 4 / heads * 4 / 4, out_dim = 1 + below(70);
  const int positions = 1 + below(40), pairs = 2 * (1 + below(dim / 4 ? dim / 4 : 1)) / 2;
  f32 *x = block((i64)rows * n * 4), *y = block((i64)rows * out_dim * 4);
  Embed *embed = add_op(OP_EMBED, 1);
  embed->vocab = 1 + below(40);
  embed->table = random_factor(n, embed->vocab, 1, 0);
  embed->out = (u64)x, embed->dim = n, embed->scale = 1, embed->vectorToken = -1 - below(2), embed->vectorDim = n;
  p->input = (u64)random_floats((i64)rows * n);
  Lookup *lookup = add_op(OP_LOOKUP, 1);
  lookup->n = 1 + below(9), lookup->tokens = 1 + below(40), lookup->out = (u64)block((i64)rows * lookup->n * 4);
  lookup->values = (u64)random_floats((i64)lookup->tokens * lookup->n);
  Rope *rope = add_op(OP_ROPE, 1);
  rope->x = (u64)x, rope->dim = n, rope->heads = heads, rope->headDim = dim, rope->rotaryDim = 2 * pairs;
  if (rope->rotaryDim > dim) rope->heads = 0;
  else rope->at = below(dim - rope->rotaryDim + 1);
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
  const u64 words = random_words(x, rows, n);
  Linear *linear = add_op(OP_LINEAR, 1);
  linear->x = (u64)x, linear->packed = (u64)packed, linear->n = n, linear->count = 1, linear->inputPerRow = 1;
  linear->words = words;
  linear->floats = below(4) == 0;
  linear->matrices[0] = random_product(n, out_dim, 1, y);
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
  route->experts = count, route->used = used, route->score = below(4), route->normalize = below(2), route->scale = 1;
  route->perExpert = below(2) + 1;
  if (below(2)) route->given = (u64)random_floats((i64)rows * used);
  Group *group = add_op(OP_GROUP, 1);
  group->chosen = (u64)chosen, group->groups = (u64)groups, group->experts = count, group->used = used;
  const u64 words = random_words(x, rows, n);
  Linear *linear = add_op(OP_LINEAR, used);
  linear->words = words;
  linear->x = (u64)x, linear->packed = (u64)packed, linear->groups = (u64)groups, linear->n = n, linear->count = 1;
  linear->inputPerRow = 1, linear->floats = below(4) == 0;
  linear->matrices[0] = random_product(n, out_dim, count, y);
  Combine *combine = add_op(OP_COMBINE, 1);
  combine->x = (u64)y, combine->shares = (u64)shares, combine->dim = out_dim, combine->used = used;
  combine->out = (u64)block((i64)rows * out_dim * 4);
}

typedef struct {
  u64 out;
  int groups, count, block;
} Choice;
// Scores the stored keys of the first head, and chooses some of them.
static Choice choose(Pass *p, int rows, const Store *store, int closed) {
  const int sums = below(2), heads = sums ? 1 + below(20) : store->heads;
  const Choice choice = {0, sums ? 1 : heads, 1 + below(30), 1 + below(2) * below(40)};
  const int blocks = (store->ctxLen + choice.block - 1) / choice.block;
  const int some = 1 + below(blocks), spans = (blocks + some - 1) / some;
  if (p->scratchBytes < store->headDim * W * 4) p->scratch = (u64)block(p->scratchBytes = store->headDim * W * 4);
  ScorePositions *score = add_op(OP_SCORE_POSITIONS, spans);
  score->q = (u64)random_floats((i64)rows * heads * store->headDim), score->keys = store->keys;
  score->weights = sums ? (u64)random_floats((i64)rows * heads) : 0;
  score->scores = (u64)block((i64)rows * choice.groups * blocks * 4), score->heads = heads, score->headDim = store->headDim;
  score->ctxLen = store->ctxLen, score->type = store->type, score->block = choice.block, score->blocks = blocks;
  score->spanBlocks = some, score->spans = spans, score->closed = closed;
  ChoosePositions *op = add_op(OP_CHOOSE_POSITIONS, 1);
  op->scores = score->scores, op->out = (u64)block((i64)rows * choice.groups * choice.count * 4), op->groups = choice.groups;
  op->count = choice.count, op->block = choice.block, op->blocks = blocks, op->local = below(1 + choice.count);
  op->closed = closed;
  return (Choice){op->out, choice.groups, choice.count, choice.block};
}

// Rotated heads are filled up to whole ones of these.
static int head_group(int type) { return type == KV_Q4_0 ? 32 : type == KV_Q8_0 ? 16 : 1; }
// Stores keys and values, and attends to them, in every type of cache.
static void attention(Pass *p, int rows) {
  const int has_entries = !below(3), kv_heads = has_entries ? 1 : 1 + below(3), heads = kv_heads * (1 + below(9)), type = below(4), group = head_group(type);
  const int dim = group > 1 ? group * (1 + below(9)) : 1 + below(below(4) ? 100 : 300);
  const int value_dim = has_entries ? dim : group > 1 ? group * (1 + below(4)) : 1 + below(100);
  const int filled = FILLED_HEAD(value_dim), ctx = 32 * (1 + below(20)), start = below(ctx - ROWS_MAX);
  u8 *keys = block((i64)kv_heads * ctx * kv_bytes(type, dim)), *values = block((i64)kv_heads * ctx * kv_bytes(type, filled));
  for (i64 i = 0; i < (i64)kv_heads * ctx * kv_bytes(type, dim); i++) keys[i] = 0;
  for (i64 i = 0; i < (i64)kv_heads * ctx * kv_bytes(type, filled); i++) values[i] = 0;
  i32 *cells = block(rows * 4), *ends = block(rows * 4), *chunk = block(16);
  const int span = below(2);
  for (int i = 0; i < rows; i++) cells[i] = start + i, ends[i] = start + (span ? rows : i + 1);
  chunk[0] = 0, chunk[1] = rows, chunk[2] = 0, chunk[3] = rows;
  if (below(4)) p->decodeRows = 0;
  p->scratch = (u64)block(p->scratchBytes = word_bytes(dim, value_dim));
  p->cells = (u64)cells, p->ends = (u64)ends, p->blocks = (u64)chunk, p->blockCount = 1;
  Store *store = add_op(OP_STORE, 1);
  store->k = (u64)random_floats((i64)rows * kv_heads * dim), store->v = (u64)random_floats((i64)rows * kv_heads * value_dim);
  store->keys = (u64)keys, store->values = (u64)values, store->heads = kv_heads, store->headDim = dim;
  store->valueDim = store->valueStride = value_dim, store->ctxLen = ctx, store->kept = 1, store->type = type;
  const Choice choice = below(2) ? (Choice){} : choose(p, rows, store, has_entries || below(2));
  Attend *attend = add_op(OP_ATTEND, 1);
  attend->chosen = choice.out, attend->chosenCount = choice.count, attend->chosenBlock = choice.block;
  attend->chosenGroups = choice.groups;
  attend->ratio = store->ratio = !has_entries ? 0 : choice.out ? choice.block : 1 + below(40);
  const i64 all = has_entries ? MAX(choice.count, ctx / attend->ratio) + 32 : 0, floats = (ctx + 32 + all) * (dim + filled) * 4;
  if ((choice.out || has_entries) && p->scratchBytes < floats) p->scratch = (u64)block(p->scratchBytes = floats);
  attend->q = (u64)random_floats((i64)rows * heads * dim), attend->out = (u64)block((i64)rows * heads * value_dim * 4);
  attend->keys = (u64)keys, attend->values = (u64)values, attend->heads = heads, attend->kvHeads = kv_heads;
  attend->headDim = dim, attend->valueDim = value_dim, attend->ctxLen = ctx, attend->kept = 1, attend->type = type;
  attend->window = (has_entries || below(2)) * (1 + below(300)), attend->chunked = below(2), attend->scale = 0.2f, attend->spans = below(3);
  attend->softCap = below(2) ? 5 : 0;
  if (below(2)) attend->sinks = (u64)random_floats(heads);
  if (below(2)) attend->slopes = (u64)random_floats(heads);
  attend->far = below(40);
  if (below(2)) attend->biases = (u64)random_floats(heads * (2 * attend->far + 1));
}

static const int ACTS[] = {
  ACT_SILU, ACT_GELU, ACT_GELU_ERF, ACT_RELU, ACT_RELU_SQR, ACT_SIGMOID, ACT_TANH, ACT_SWIGLU_OAI, ACT_SOFTPLUS, ACT_ELU,
};
static int any_act(void) { return ACTS[below(sizeof ACTS / sizeof *ACTS)]; }
static u64 packed_or_none(int rows, int n) {
  return n % 256 || below(2) ? 0 : (u64)block((i64)rows * PACKED_BYTES(n));
}

// Norms, gates and other rowwise ops, one after another, at any width.
static void each_row(Pass *p, int rows) {
  const int runs = 1 + below(3), each = below(3) ? 1 + below(90) : 256, n = runs * each;
  f32 *x = block((i64)rows * n * 4), *y = block((i64)rows * n * 4);
  p->input = (u64)random_floats((i64)rows * (n + 5));
  Input *input = add_op(OP_INPUT, 1);
  input->out = (u64)x, input->dim = n;
  RmsNorm *rms = add_op(OP_RMS_NORM, 1);
  rms->x = (u64)x, rms->out = (u64)(below(2) ? x : y), rms->n = each, rms->runs = runs, rms->weightRows = 1 + below(runs);
  rms->eps = 1e-6f, rms->sum = below(2), rms->packed = packed_or_none(rows, n);
  if (below(2)) rms->weight = (u64)random_floats((i64)rms->weightRows * each);
  LayerNorm *layer = add_op(OP_LAYER_NORM, 1);
  layer->x = (u64)x, layer->out = (u64)y, layer->n = each, layer->runs = runs, layer->weightRows = 1 + below(runs);
  layer->eps = 1e-6f, layer->packed = packed_or_none(rows, n);
  if (below(2)) layer->weight = (u64)random_floats((i64)layer->weightRows * each);
  if (below(2)) layer->bias = (u64)random_floats((i64)layer->weightRows * each);
  Gate *gate = add_op(OP_GATE, 1);
  gate->gate = (u64)x, gate->up = below(4) ? (u64)y : 0, gate->out = (u64)y, gate->n = n, gate->act = any_act();
  gate->gateMax = 7, gate->upMax = below(2) * 7, gate->packed = packed_or_none(rows, n);
  Add *add = add_op(OP_ADD, 1);
  add->a = (u64)x, add->b = (u64)y, add->out = (u64)x, add->n = n, add->scale = 0.5f;
  AddVector *vector = add_op(OP_ADD_VECTOR, 1);
  vector->x = (u64)x, vector->vector = (u64)random_floats(n), vector->n = n;
  AddGiven *given = add_op(OP_ADD_GIVEN, 1);
  given->x = (u64)x, given->n = n, given->at = below(6), given->vectorDim = n + 5;
  PositionScale *place = add_op(OP_POSITION_SCALE, 1);
  place->x = (u64)x, place->n = n, place->coef = 0.1f, place->floorScale = 1 + below(8192), place->offset = below(2);
  SoftCap *cap = add_op(OP_SOFT_CAP, 1);
  cap->x = (u64)x, cap->n = n, cap->cap = 30;
  Scale *scale = add_op(OP_SCALE, 1);
  scale->x = (u64)x, scale->n = n, scale->by = 2;
  Multiply *multiply = add_op(OP_MULTIPLY, 1);
  multiply->a = (u64)x, multiply->b = (u64)(below(2) ? x : y), multiply->out = (u64)y, multiply->n = n;
  multiply->narrow = below(2) ? n : runs, multiply->act = below(3) ? any_act() : -1;
  MultiplyVector *factors = add_op(OP_MULTIPLY_VECTOR, 1);
  factors->x = (u64)x, factors->n = n, factors->narrow = below(2) ? n : runs;
  factors->vector = (u64)random_floats(factors->narrow);
  Rotate *rotate = add_op(OP_ROTATE, 1);
  rotate->x = (u64)x, rotate->n = n, rotate->heads = runs, rotate->stride = rotate->dim = each;
  rotate->filled = (each + 31) / 32 * 32, rotate->outDim = 1 + below(rotate->filled);
  rotate->out = (u64)block((i64)rows * runs * rotate->outDim * 4);
  const int like_dim = 1 + below(100);
  MatchLength *match = add_op(OP_MATCH_LENGTH, 1);
  match->x = (u64)x, match->like = (u64)random_floats((i64)rows * like_dim), match->n = n, match->likeN = like_dim;
  KeepLargest *largest = add_op(OP_KEEP_LARGEST, 1);
  largest->x = (u64)x, largest->n = n, largest->factor = 0.5f;
  Clamp *clamp = add_op(OP_CLAMP, 1);
  clamp->x = (u64)x, clamp->n = n, clamp->min = -1, clamp->max = 1;
  const int streams = 1 + below(4), all = below(2) ? streams : streams * (streams + 2), outs = 1 + below(3);
  StreamWeights *weights = add_op(OP_STREAM_WEIGHTS, 1);
  weights->x = (u64)random_floats((i64)rows * all), weights->n = all, weights->streams = streams;
  weights->scale = (u64)random_floats(all > streams ? 3 : 1), weights->base = (u64)random_floats(all);
  weights->iterations = 1 + below(20), weights->eps = 1e-6f;
  MixParts *mix = add_op(OP_MIX_PARTS, 1);
  mix->x = (u64)x, mix->parts = runs, mix->n = each, mix->outs = outs, mix->at = below(3), mix->weightsN = runs * outs + mix->at;
  mix->weights = (u64)random_floats((i64)rows * mix->weightsN), mix->out = (u64)block((i64)rows * outs * each * 4);
  const int at = below(each), to = 1 + below(each - at);
  f32 *part = block((i64)rows * runs * to * 4);
  Slice *slice = add_op(OP_SLICE, 1);
  slice->x = (u64)x, slice->out = (u64)part, slice->heads = runs, slice->from = each, slice->to = to, slice->at = at;
  Join *join = add_op(OP_JOIN, 1);
  join->a = (u64)x, join->b = (u64)part, join->heads = runs, join->first = each, join->second = to;
  join->out = (u64)block((i64)rows * runs * (each + to) * 4);
  const int used = 1 + below(4);
  Weigh *weigh = add_op(OP_WEIGH, 1);
  weigh->x = (u64)x, weigh->shares = (u64)random_floats((i64)rows * used), weigh->n = n, weigh->used = used;
  weigh->out = (u64)block((i64)rows * used * n * 4);
  Take *take = add_op(OP_TAKE, 1);
  take->head.rowSet = ROWS_WANTED, take->x = (u64)x, take->n = n, take->out = (u64)block((i64)p->wanted * n * 4);
}

// Recurrent states: the last rows, or a matrix per head.
static void recurrent(Pass *p, int rows) {
  const int heads = 1 + below(5), key_heads = heads % 2 ? 1 : heads / 2, dim = 1 + below(70), state_dim = 1 + below(70);
  i32 *cells = block(rows * 4), *slots = AT(i32, p->slots);
  for (int i = 0; i < rows; i++) cells[i] = below(3), slots[i] = below(SLOTS);
  p->cells = (u64)cells;
  const int n = 1 + below(200), taps = 1 + below(5);
  CausalConv *conv = add_op(OP_CAUSAL_CONV, 1);
  conv->x = (u64)random_floats((i64)rows * n), conv->out = (u64)block((i64)rows * n * 4), conv->n = n, conv->taps = taps;
  conv->state = (u64)random_floats((i64)SLOTS * (taps - 1) * n), conv->weight = (u64)random_floats((i64)n * taps);
  conv->act = below(2) ? ACT_SILU : -1;
  if (below(2)) conv->bias = (u64)random_floats(n);
  Compress *compress = add_op(OP_COMPRESS, 1);
  const int overlaps = below(2), ratio = 1 + below(9), width = n * (1 + overlaps);
  compress->x = (u64)random_floats((i64)rows * width), compress->gate = (u64)random_floats((i64)rows * width);
  compress->bias = (u64)random_floats((i64)ratio * width), compress->out = (u64)block((i64)rows * n * 4);
  compress->cells = ratio * (1 + overlaps) - 1, compress->ratio = ratio, compress->dim = n, compress->width = width;
  compress->state = (u64)random_floats((i64)SLOTS * compress->cells * 2 * width);
  DeltaRule *delta = add_op(OP_DELTA_RULE, 1);
  const int alphas = below(2) ? 1 : dim;
  delta->q = (u64)random_floats((i64)rows * key_heads * dim), delta->k = (u64)random_floats((i64)rows * key_heads * dim);
  delta->v = (u64)random_floats((i64)rows * heads * dim), delta->out = (u64)block((i64)rows * heads * dim * 4);
  delta->alpha = (u64)random_floats((i64)rows * heads * alphas), delta->beta = (u64)random_floats((i64)rows * heads);
  delta->a = (u64)random_floats(heads), delta->dt = (u64)random_floats((i64)heads * alphas);
  delta->state = (u64)random_floats((i64)SLOTS * heads * dim * dim), delta->heads = heads, delta->keyHeads = key_heads;
  delta->headDim = dim, delta->alphas = alphas, delta->repeat = below(2), delta->scale = 0.1f, delta->bound = -below(2);
  Wkv *wkv = add_op(OP_WKV, 1);
  wkv->r = (u64)random_floats((i64)rows * heads * dim), wkv->w = (u64)random_floats((i64)rows * heads * dim);
  wkv->k = (u64)random_floats((i64)rows * key_heads * dim), wkv->v = (u64)random_floats((i64)rows * key_heads * dim);
  if (below(2)) {
    wkv->a = (u64)random_floats((i64)rows * heads * dim), wkv->b = (u64)random_floats((i64)rows * heads * dim);
  }
  wkv->out = (u64)block((i64)rows * heads * dim * 4), wkv->state = (u64)random_floats((i64)SLOTS * heads * dim * dim);
  wkv->heads = heads, wkv->keyHeads = key_heads, wkv->headDim = dim, wkv->early = below(2);
  wkv->complement = below(2), wkv->bound = -below(2);
  SelectiveScan *scan = add_op(OP_SELECTIVE_SCAN, 1);
  const int groups = key_heads, decays = below(2) ? 1 : state_dim;
  scan->x = (u64)random_floats((i64)rows * heads * dim), scan->out = (u64)block((i64)rows * heads * dim * 4);
  scan->dt = (u64)random_floats((i64)rows * heads), scan->dtBias = (u64)random_floats(heads);
  scan->b = (u64)random_floats((i64)rows * groups * state_dim), scan->c = (u64)random_floats((i64)rows * groups * state_dim);
  scan->a = (u64)random_floats((i64)heads * decays), scan->d = (u64)random_floats(heads), scan->decays = decays;
  scan->state = (u64)random_floats((i64)SLOTS * heads * dim * state_dim), scan->heads = heads, scan->headDim = dim;
  scan->stateDim = state_dim, scan->groups = groups;
}

// A separate matrix per head, plain and transposed.
static void by_heads(Pass *p, int rows) {
  const int heads = 1 + below(4), n = 256 * (1 + below(2)), out_dim = 1 + below(40), transposed = below(2);
  HeadLinear *linear = add_op(OP_HEAD_LINEAR, 1);
  linear->head.rowSet = below(2) ? ROWS_WANTED : ROWS_ALL;
  const int count = linear->head.rowSet == ROWS_WANTED ? p->wanted : rows;
  linear->x = (u64)random_floats((i64)count * heads * (transposed ? out_dim : n));
  linear->out = (u64)block((i64)count * heads * (transposed ? n : out_dim) * 4);
  linear->n = n, linear->heads = heads, linear->transposed = transposed;
  linear->matrix = random_matrix(n, out_dim, heads, 0);
  if (linear->matrix.scales) linear->matrix.scales = (u64)random_floats(heads);
}

// A context that drops its middle.
static void shift(Pass *p) {
  const int heads = 1 + below(3), type = below(4), group = head_group(type), ctx = 32 * (1 + below(6));
  const int dim = group > 1 ? group * (1 + below(6)) : 2 + below(99);
  const int value_dim = group > 1 ? group * (1 + below(6)) : 1 + below(100), filled = FILLED_HEAD(value_dim), pairs = below(dim / 2 + 1);
  p->slot = below(SLOTS), p->length = 1 + below(ctx), p->keep = below(p->length);
  p->discard = below(p->length - p->keep + 1);
  const i64 cells = (i64)SLOTS * heads * ctx;
  Shift *shift = add_op(OP_SHIFT, 1);
  shift->keys = (u64)random_block(cells * kv_bytes(type, dim)), shift->type = type, shift->heads = heads;
  shift->values = (u64)random_block(cells * kv_bytes(type, filled)), shift->headDim = dim, shift->valueDim = value_dim;
  shift->ctxLen = ctx, shift->rotaryDim = 2 * pairs, shift->neox = below(2);
  if (below(4)) shift->cos = (u64)random_floats(pairs), shift->sin = (u64)random_floats(pairs);
}

// A subset of the processor's features beyond the level of the build.
static int some_features(void) {
  int features = below(2) ? FEATURE_HALVES : 0;
#if AVXVNNI
  if (__builtin_cpu_supports("avxvnni") && below(2)) features |= FEATURE_AVXVNNI;
#endif
  return features;
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
  p->stamp = stamp, p->threads = 1, p->spin = 10, p->features = some_features(), p->rows = rows, p->decodeRows = below(rows + 1);
  p->wanted = 1 + below(rows), p->wantedDecode = below(p->wanted + 1);
  i32 *wanted = block(p->wanted * 4);
  for (int i = 0; i < p->wanted; i++) wanted[i] = below(rows);
  p->wantedRows = (u64)wanted;
  p->scratch = (u64)block(p->scratchBytes = 1 << 20);
  switch (below(7)) {
    case 0: dense(p, rows); break;
    case 1: experts(rows); break;
    case 2: each_row(p, rows); break;
    case 3: recurrent(p, rows); break;
    case 4: by_heads(p, rows); break;
    case 5: shift(p); break;
    default: attention(p, rows);
  }
  p->ops = (u64)records, p->opCount = op_count;
  hearth_run(p, 0);
  free(records);
  free(p);
  while (block_count) free(blocks[--block_count]);
}

int main(int count, char **words) {
  if (count > 1 && !strcmp(words[1], "--broken")) { // must end the program: a test of the sanitizer
    const f32 *x = block(40);
    return (int)sum(LOAD(vf, x + 8));
  }
  const u64 seed = count > 1 ? strtoull(words[1], 0, 10) : 1;
  const int rounds = count > 2 ? atoi(words[2]) : 1000;
  for (int i = 0; i < rounds; i++) {
    state = (seed + (u64)i) * 0x9e3779b97f4a7c15ull; // so that a single round can be repeated
    fuzz_round((u32)i + 1);
  }
  printf("%d rounds from seed %llu\n", rounds, seed);
  return 0;
}
