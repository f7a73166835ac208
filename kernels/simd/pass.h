// pass: how threads share the ops of a pass.
//
// An op consists of chunks. A thread claims some, runs them, and counts them as done; an op is over when all its chunks
// are done, even if some threads never arrived. So a preempted thread delays the others only if it holds a chunk.
// Counters carry the number of the pass, which only grows: a late thread finds everything taken and continues.
#pragma once
#include "layout.h"

#define AT(T, address) ((T *)(__UINTPTR_TYPE__)(address))
#define LOAD_ATOMIC(p) __atomic_load_n(p, __ATOMIC_ACQUIRE)

typedef struct {
  Pass p; // a copy: the header may be rewritten while a late thread reads
  Pass *shared;
  u8 *scratch;
  u32 stamp;
} Thread;

// --- sleeping ---

#if defined(__linux__) && defined(__x86_64__)
#define PAUSE() __builtin_ia32_pause()
static long futex(void *at, long op, long value) {
  long result;
  register long timeout __asm__("r10") = 0;
  __asm__ volatile("syscall" : "=a"(result) : "a"(202), "D"(at), "S"(op), "d"(value), "r"(timeout) : "rcx", "r11", "memory");
  return result;
}
#elif defined(__linux__) && defined(__aarch64__)
#define PAUSE() __asm__ volatile("isb")
static long futex(void *at, long op, long value) {
  register long number __asm__("x8") = 98, x0 __asm__("x0") = (long)at, x1 __asm__("x1") = op;
  register long x2 __asm__("x2") = value, x3 __asm__("x3") = 0;
  __asm__ volatile("svc 0" : "+r"(x0) : "r"(number), "r"(x1), "r"(x2), "r"(x3) : "memory");
  return x0;
}
#elif defined(__x86_64__)
#define PAUSE() __builtin_ia32_pause()
#elif defined(__aarch64__)
#define PAUSE() __asm__ volatile("isb")
#else
#define PAUSE() __asm__ volatile("" ::: "memory")
#endif
#if defined(__linux__)
enum { FUTEX_WAIT = 128, FUTEX_WAKE = 129 };
#elif defined(_WIN32)
// Functions of KernelBase.dll. The host gives their addresses: the library imports nothing.
typedef i32 WaitOnAddress(void *word, void *expected, u64 bytes, u32 milliseconds);
typedef void WakeByAddressAll(void *word);
enum { FOREVER = -1 };
#elif !defined(__wasm__)
// os_sync_wait_on_address and os_sync_wake_by_address_all of libSystem (macOS 14.4). The host gives their addresses.
typedef i32 OsSyncWait(void *word, u64 expected, u64 bytes, u32 flags);
typedef i32 OsSyncWakeAll(void *word, u64 bytes, u32 flags);
#endif

// Returns when the word has changed, or spuriously.
INL void sleep_on(Thread *t, i32 *word, i32 expected) {
#if defined(__wasm__)
  __builtin_wasm_memory_atomic_wait32(word, expected, -1);
#elif defined(__linux__)
  futex(word, FUTEX_WAIT, expected);
#else
  if (!t->p.waitOn) for (int i = 0; i < 1000; i++) PAUSE();
#if defined(_WIN32)
  else ((WaitOnAddress *)(__UINTPTR_TYPE__)t->p.waitOn)(word, &expected, sizeof expected, FOREVER);
#else
  else ((OsSyncWait *)(__UINTPTR_TYPE__)t->p.waitOn)(word, (u32)expected, sizeof expected, 0);
#endif
#endif
}
INL void wake_all(Thread *t, i32 *word) {
#if defined(__wasm__)
  __builtin_wasm_memory_atomic_notify(word, -1);
#elif defined(__linux__)
  futex(word, FUTEX_WAKE, 1 << 30);
#elif defined(_WIN32)
  if (t->p.wakeAll) ((WakeByAddressAll *)(__UINTPTR_TYPE__)t->p.wakeAll)(word);
#else
  if (t->p.wakeAll) ((OsSyncWakeAll *)(__UINTPTR_TYPE__)t->p.wakeAll)(word, sizeof *word, 0);
#endif
}

// --- chunks ---

// Claims one chunk, or a `share`th of the remaining ones: long runs first, so that memory is read in long streams, and
// none of fewer chunks than LEAST_RUN if there are enough, because the start of a run waits for memory. Returns the
// first chunk, or −1 if no chunk is left.
enum { LEAST_RUN = 4 };
INL int claim(Thread *t, Head *op, int total, int share, int *count) {
  const int least = MAX(MIN(LEAST_RUN, total / (4 * t->p.threads)), 1);
  u64 seen = LOAD_ATOMIC(&op->next);
  for (;;) {
    i32 late = (i32)((u32)(seen >> 32) - t->stamp);
    int taken = late < 0 ? 0 : (int)(u32)seen;
    if (late > 0 || taken >= total) return -1;
    *count = share ? MAX((total - taken) / share, MIN(least, total - taken)) : 1;
    u64 after = (u64)t->stamp << 32 | (u32)(taken + *count);
    if (__atomic_compare_exchange_n(&op->next, &seen, after, 1, __ATOMIC_ACQ_REL, __ATOMIC_ACQUIRE)) return taken;
  }
}
INL void finish(Thread *t, Head *op, int total, int count) {
  u64 seen = __atomic_load_n(&op->done, __ATOMIC_RELAXED), after;
  do after = (u32)(seen >> 32) == t->stamp ? seen + (u32)count : (u64)t->stamp << 32 | (u32)count;
  while (!__atomic_compare_exchange_n(&op->done, &seen, after, 1, __ATOMIC_SEQ_CST, __ATOMIC_RELAXED));
  if ((int)(u32)after != total) return;
  __atomic_fetch_add(&t->shared->wake, 1, __ATOMIC_SEQ_CST);
  if (__atomic_load_n(&t->shared->sleepers, __ATOMIC_SEQ_CST)) wake_all(t, &t->shared->wake);
}
INL int is_over(Thread *t, Head *op, int total) {
  u64 seen = __atomic_load_n(&op->done, __ATOMIC_SEQ_CST);
  i32 late = (i32)((u32)(seen >> 32) - t->stamp);
  return late > 0 || (late == 0 && (int)(u32)seen == total);
}
NOINL void wait_for(Thread *t, Head *op, int total) {
  for (int i = 0; i < t->p.spin; i++) {
    if (is_over(t, op, total)) return;
    PAUSE();
  }
  __atomic_fetch_add(&t->shared->sleepers, 1, __ATOMIC_SEQ_CST);
  for (;;) {
    i32 wake = __atomic_load_n(&t->shared->wake, __ATOMIC_SEQ_CST);
    if (is_over(t, op, total)) break;
    sleep_on(t, &t->shared->wake, wake);
  }
  __atomic_fetch_sub(&t->shared->sleepers, 1, __ATOMIC_SEQ_CST);
}

// --- rows ---

INL int rows_of(const Thread *t, const Head *op) {
  return (op->rowSet == ROWS_ALL ? t->p.rows : t->p.wanted) * op->perRow;
}
INL int decode_rows_of(const Thread *t, const Head *op) {
  return (op->rowSet == ROWS_ALL ? t->p.decodeRows : t->p.wantedDecode) * op->perRow;
}
// An activation or the result of the pass.
INL f32 *floats_at(const Thread *t, u64 address) { return AT(f32, address == RESULT ? t->p.result : address); }
