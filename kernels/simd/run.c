// run: a pass over a list of records, by all threads that call it. Freestanding: no library, no imports.
#include "ops/attend.h"
#include "ops/choose.h"
#include "ops/experts.h"
#include "ops/linear.h"
#include "ops/recurrent.h"
#include "ops/rows.h"

#if defined(_WIN32)
#define EXPORT __declspec(dllexport)
int _fltused = 0;

// Windows adds pages to a stack one at a time, when the page below the last one is touched. A function with a larger
// frame calls this first, to touch each page from the top. It changes no register that may hold something: all of
// x86-64's, since functions of vec.h's convention use all; on arm64 x16 and x17 are free.
#if defined(__x86_64__)
// rax: bytes of the frame, which lies below the return address.
__asm__(".globl __chkstk\n"
        "__chkstk:\n"
        "  pushq %rax\n"
        "  pushq %rdi\n"
        "  leaq 24(%rsp), %rdi\n"
        "1: subq $4096, %rax\n"
        "  jbe 2f\n"
        "  subq $4096, %rdi\n"
        "  testb $0, (%rdi)\n"
        "  jmp 1b\n"
        "2: addq $4096, %rax\n"
        "  subq %rax, %rdi\n"
        "  testb $0, (%rdi)\n"
        "  popq %rdi\n"
        "  popq %rax\n"
        "  ret\n");
#else
// x15: bytes of the frame / 16.
__asm__(".globl __chkstk\n"
        "__chkstk:\n"
        "  lsl x16, x15, #4\n"
        "  mov x17, sp\n"
        "1: subs x16, x16, #1, lsl #12\n"
        "  b.ls 2f\n"
        "  sub x17, x17, #1, lsl #12\n"
        "  ldrb wzr, [x17]\n"
        "  b 1b\n"
        "2: add x16, x16, #1, lsl #12\n"
        "  sub x17, x17, x16\n"
        "  ldrb wzr, [x17]\n"
        "  ret\n");
#endif
#else
#define EXPORT __attribute__((visibility("default"), used))
#endif

#if !defined(HOSTED)
// The compiler calls these for loops and for large values.
__attribute__((no_builtin)) void *memset(void *to, int value, __SIZE_TYPE__ bytes) {
  u8 *p = to;
  while (bytes--) {
    *p++ = (u8)value;
    __asm__ volatile("" ::: "memory");
  }
  return to;
}
__attribute__((no_builtin)) void *memcpy(void *restrict to, const void *restrict from, __SIZE_TYPE__ bytes) {
  u8 *p = to;
  const u8 *q = from;
  while (bytes--) {
    *p++ = *q++;
    __asm__ volatile("" ::: "memory");
  }
  return to;
}
#endif

// Ops that treat every row by itself.
NOINL void run_row(Thread *t, const Head *op, i64 row) {
#define ROW_OP(kind, type, function) case kind: function(t, (const type *)op, row); break;
  switch (op->kind) {
    ROW_OP(OP_EMBED, Embed, embed_row)
    ROW_OP(OP_INPUT, Input, input_row)
    ROW_OP(OP_LOOKUP, Lookup, lookup_row)
    ROW_OP(OP_RMS_NORM, RmsNorm, rms_norm_row)
    ROW_OP(OP_LAYER_NORM, LayerNorm, layer_norm_row)
    ROW_OP(OP_ROPE, Rope, rope_row)
    ROW_OP(OP_STORE, Store, store_row)
    ROW_OP(OP_SCORE_POSITIONS, ScorePositions, score_positions_row)
    ROW_OP(OP_CHOOSE_POSITIONS, ChoosePositions, choose_positions_row)
    ROW_OP(OP_ROUTE, Route, route_row)
    ROW_OP(OP_COMBINE, Combine, combine_row)
    ROW_OP(OP_GATE, Gate, gate_row)
    ROW_OP(OP_ADD, Add, add_row)
    ROW_OP(OP_ADD_VECTOR, AddVector, add_vector_row)
    ROW_OP(OP_ADD_GIVEN, AddGiven, add_given_row)
    ROW_OP(OP_ADD_POSITION, AddPosition, add_position_row)
    ROW_OP(OP_POSITION_SCALE, PositionScale, position_scale_row)
    ROW_OP(OP_SOFT_CAP, SoftCap, soft_cap_row)
    ROW_OP(OP_SCALE, Scale, scale_row)
    ROW_OP(OP_TAKE, Take, take_row)
    ROW_OP(OP_WEIGH, Weigh, weigh_row)
    ROW_OP(OP_MULTIPLY, Multiply, multiply_row)
    ROW_OP(OP_MULTIPLY_VECTOR, MultiplyVector, multiply_vector_row)
    ROW_OP(OP_MATCH_LENGTH, MatchLength, match_length_row)
    ROW_OP(OP_KEEP_LARGEST, KeepLargest, keep_largest_row)
    ROW_OP(OP_CLAMP, Clamp, clamp_row)
    ROW_OP(OP_STREAM_WEIGHTS, StreamWeights, stream_weights_row)
    ROW_OP(OP_MIX_PARTS, MixParts, mix_parts_row)
    ROW_OP(OP_SLICE, Slice, slice_row)
    ROW_OP(OP_JOIN, Join, join_row)
    ROW_OP(OP_ROTATE, Rotate, rotate_row)
#if WORD_PANELS
    ROW_OP(OP_PACK_WORDS, PackWords, pack_words_row)
#endif
    case OP_PACK: {
      const Pack *pack = (const Pack *)op;
      pack_to(pack->packed, row, row_at(t, pack->x, row, pack->n), pack->n);
    }
  }
#undef ROW_OP
}

// Number of an op's chunks; −1 if the thread is too late to read it.
INL int chunks_of(Thread *t, Head *op) {
  switch (op->kind) {
    case OP_LINEAR: {
      const Linear *linear = (const Linear *)op;
      if (!linear->groups) return rows_of(t, op) ? units_in(linear) : 0;
      u64 active = LOAD_ATOMIC(AT(u64, linear->groups));
      return (u32)(active >> 32) == t->stamp ? (int)(u32)active * units_in(linear) : -1;
    }
    case OP_ATTEND: return t->p.blockCount * head_groups(t, (const Attend *)op);
    case OP_GROUP: return 1;
    case OP_SHIFT: return ((const Shift *)op)->heads;
    case OP_HEAD_LINEAR: return rows_of(t, op) ? ((const HeadLinear *)op)->heads : 0;
    case OP_CAUSAL_CONV: return (((const CausalConv *)op)->n + CHANNELS - 1) / CHANNELS;
    case OP_COMPRESS: return (((const Compress *)op)->dim + CHANNELS - 1) / CHANNELS;
    case OP_DELTA_RULE: return ((const DeltaRule *)op)->heads;
    case OP_WKV: return ((const Wkv *)op)->heads;
    case OP_SELECTIVE_SCAN: return ((const SelectiveScan *)op)->heads;
    default: return rows_of(t, op);
  }
}

NOINL void run_chunks(Thread *t, Head *op, int first, int count) {
  switch (op->kind) {
    case OP_LINEAR: linear_chunks(t, (const Linear *)op, first, count); break;
#define CHUNK_OP(kind, type, function) \
  case kind: for (int i = 0; i < count; i++) function(t, (const type *)op, first + i); break;
    CHUNK_OP(OP_ATTEND, Attend, attend_chunk)
    CHUNK_OP(OP_SHIFT, Shift, shift_chunk)
    CHUNK_OP(OP_HEAD_LINEAR, HeadLinear, head_linear_chunk)
    CHUNK_OP(OP_CAUSAL_CONV, CausalConv, causal_conv_chunk)
    CHUNK_OP(OP_COMPRESS, Compress, compress_chunk)
    CHUNK_OP(OP_DELTA_RULE, DeltaRule, delta_rule_chunk)
    CHUNK_OP(OP_WKV, Wkv, wkv_chunk)
    CHUNK_OP(OP_SELECTIVE_SCAN, SelectiveScan, selective_scan_chunk)
#undef CHUNK_OP
    case OP_GROUP: group_pairs(t, (const Group *)op); break;
    default:
      for (i64 row = first; row < first + count; row++)
        for (int i = 0; i <= op->joined; i++) run_row(t, (const Head *)((u8 *)op + i * RECORD_BYTES), row);
  }
}
// Long runs first for ops that stream weights, one chunk at a time for slow ops. Neighbouring prompt rows store keys to
// the same cache lines, so each thread takes as many of them at once as possible.
INL int share_of(Thread *t, const Head *op) {
  const int is_prompt = rows_of(t, op) > decode_rows_of(t, op);
  switch (op->kind) {
    case OP_ATTEND: return 0;
    case OP_LINEAR: return is_prompt ? 0 : t->p.threads + 1;
    case OP_HEAD_LINEAR:
    case OP_CAUSAL_CONV:
    case OP_COMPRESS:
    case OP_DELTA_RULE:
    case OP_WKV:
    case OP_SELECTIVE_SCAN: return 2 * t->p.threads;
    default: return is_prompt ? t->p.threads : 2 * t->p.threads;
  }
}

// Makes a consistent copy of the header. Returns 0 while another one is being written; its writer will call again.
INL int read_header(Pass *shared, Pass *copy) {
  for (;;) {
    u32 stamp = __atomic_load_n(&shared->stamp, __ATOMIC_ACQUIRE);
    if (!stamp) return 0;
    *copy = *(volatile Pass *)shared;
    __atomic_thread_fence(__ATOMIC_ACQUIRE);
    if (__atomic_load_n(&shared->stamp, __ATOMIC_RELAXED) == stamp) {
      copy->stamp = stamp;
      return 1;
    }
  }
}

// Runs the pass of the header, together with all other threads that call this. Returns when it is done.
EXPORT void hearth_run(Pass *shared, int index) {
  Thread t;
  if (!read_header(shared, &t.p)) return;
  t.shared = shared;
  t.stamp = t.p.stamp;
  t.scratch = AT(u8, t.p.scratch) + index * t.p.scratchBytes;
#if AMX
  const int has_tiles = t.p.features & FEATURE_AMX && t.p.rows > t.p.decodeRows && amx_begin();
  if (!has_tiles) t.p.features &= ~FEATURE_AMX;
#endif
  for (int i = 0; i < t.p.opCount;) {
    Head *op = AT(Head, t.p.ops + (u64)i * RECORD_BYTES);
    i += 1 + op->joined;
    const int total = chunks_of(&t, op), share = share_of(&t, op);
    if (total <= 0) continue;
    int count;
    for (int first; (first = claim(&t, op, total, share, &count)) >= 0;) {
      run_chunks(&t, op, first, count);
      finish(&t, op, total, count);
    }
    wait_for(&t, op, total);
  }
#if AMX
  if (has_tiles) amx_end();
#endif
}

#if defined(__x86_64__)
// CPUID: eax, ebx, ecx, edx of a leaf; leaf −1: XCR0, the registers that the system saves.
EXPORT void hearth_cpuid(u32 leaf, u32 subleaf, u32 *out) {
  if (leaf == 0xffffffff) __asm__ volatile("xgetbv" : "=a"(out[0]), "=d"(out[1]) : "c"(0));
  else __asm__ volatile("cpuid" : "=a"(out[0]), "=b"(out[1]), "=c"(out[2]), "=d"(out[3]) : "a"(leaf), "c"(subleaf));
}
#endif
