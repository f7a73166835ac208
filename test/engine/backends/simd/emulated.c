// emulated: a program for Linux on arm64 or x86-64, for an emulator. Maps the file that it is given at BASE. Whenever
// the file's first word is 1, it calls the kernels that lie in it: their address, and that of the header, follow the
// word.
typedef unsigned long long u64;
typedef int i32;

#define BASE 0x1000000000ull
#define BYTES (512ull << 20)

#if defined(__aarch64__)
enum { OPEN = 56, EXIT = 93, NANOSLEEP = 101, MMAP = 222, FIXED = 0x10 };
static long call(long number, long a, long b, long c, long d, long e, long f) {
  register long x8 __asm__("x8") = number, x0 __asm__("x0") = a, x1 __asm__("x1") = b, x2 __asm__("x2") = c;
  register long x3 __asm__("x3") = d, x4 __asm__("x4") = e, x5 __asm__("x5") = f;
  __asm__ volatile("svc 0" : "+r"(x0) : "r"(x8), "r"(x1), "r"(x2), "r"(x3), "r"(x4), "r"(x5) : "memory");
  return x0;
}
#else
enum { OPEN = 257, EXIT = 60, NANOSLEEP = 35, MMAP = 9, FIXED = 0x10 };
static long call(long number, long a, long b, long c, long d, long e, long f) {
  register long r10 __asm__("r10") = d, r8 __asm__("r8") = e, r9 __asm__("r9") = f;
  __asm__ volatile("syscall" : "+a"(number) : "D"(a), "S"(b), "d"(c), "r"(r10), "r"(r8), "r"(r9) : "rcx", "r11", "memory");
  return number;
}
#endif

__attribute__((used)) static void serve(long *stack) {
  const long file = call(OPEN, -100, stack[2], 2, 0, 0, 0); // argv[1], to read and write
  const long at = file < 0 ? file : call(MMAP, BASE, BYTES, 7, 1 | FIXED, file, 0); // to execute too; shared, at this address
  if (at != (long)BASE) call(EXIT, 1, 0, 0, 0, 0, 0);
  i32 *word = (i32 *)BASE;
  for (;;) {
    const long nap[2] = {0, 50000};
    while (__atomic_load_n(word, __ATOMIC_ACQUIRE) != 1) call(NANOSLEEP, (long)nap, 0, 0, 0, 0, 0);
    (*(void (**)(u64, i32))(BASE + 16))(*(u64 *)(BASE + 8), 0);
    __atomic_store_n(word, 2, __ATOMIC_RELEASE);
  }
}
#if defined(__aarch64__)
__attribute__((naked)) void _start(void) { __asm__("mov x0, sp\n b serve"); }
#else
__attribute__((naked)) void _start(void) { __asm__("mov %rsp, %rdi\n call serve"); }
#endif
