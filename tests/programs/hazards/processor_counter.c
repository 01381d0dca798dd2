// Work that is as long as the processor's time stamp counter says.
// Shows: three threads that lock until so many ticks have passed, by the compiler's own instruction, by assembly in functions
//        that keep what they need below the stack pointer and in registers, and by both instructions that read the counter.
// True:  the count is virtual time: it grows, and is the same when the execution happens again.
// expect: none
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <x86intrin.h>

#define THREADS 3
#define ENOUGH 200000ul

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static long turns;

static unsigned long by_hand(void) {
    unsigned low, high, number;
    __asm__ volatile("rdtscp" : "=a"(low), "=d"(high), "=c"(number));
    return (unsigned long)high << 32 | low;
}

// A leaf: what it keeps in memory lies below the stack pointer. Its other registers and the flags outlive the instruction.
__attribute__((noinline)) static unsigned long among_others(unsigned long seed) {
    volatile unsigned long kept[4] = { seed, seed * 3, seed * 5, seed * 7 };
    unsigned long first = seed + 1, second = seed + 2, third = seed + 3, low, high;
    double number = (double)seed;
    unsigned char carry;
    __asm__ volatile("stc\n\trdtsc\n\tsetc %2"
                     : "=a"(low), "=d"(high), "=q"(carry), "+r"(first), "+r"(second), "+r"(third), "+x"(number));
    if (kept[0] != seed || kept[1] != seed * 3 || kept[2] != seed * 5 || kept[3] != seed * 7) abort();
    if (first != seed + 1 || second != seed + 2 || third != seed + 3 || number != (double)seed || carry != 1) abort();
    return high << 32 | low;
}

static void *work(void *unused) {
    unsigned long begin = __rdtsc(), now = begin;
    long taken = 0;
    while (now - begin < ENOUGH) {
        pthread_mutex_lock(&lock);
        turns++;
        taken++;
        pthread_mutex_unlock(&lock);
        unsigned long later = taken % 2 ? among_others(now) : by_hand();
        if (later < now) abort();
        now = later;
    }
    pthread_mutex_lock(&lock);
    printf("%ld turns\n", taken);
    pthread_mutex_unlock(&lock);
    return unused;
}

int main(void) {
    pthread_t threads[THREADS];
    for (int nth = 0; nth < THREADS; nth++) pthread_create(&threads[nth], NULL, work, NULL);
    for (int nth = 0; nth < THREADS; nth++) pthread_join(threads[nth], NULL);
    printf("%ld turns in all\n", turns);
    return 0;
}
