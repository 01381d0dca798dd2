// crashes: the log is rotated while a writer, which has found its place in the old one, has not written yet
// story: it was unmapped before by
#define _GNU_SOURCE
#include <pthread.h>
#include <stdatomic.h>
#include <string.h>
#include <sys/mman.h>

enum { BYTES = 1 << 16, LINE = 32 };
static _Atomic(char *) log_begin;
static atomic_int used;

static char *mapped(void) {
    return mmap(NULL, BYTES, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
}

static void *writer(void *unused) {
    char *begin = atomic_load(&log_begin);
    int at = atomic_fetch_add(&used, LINE);
    memcpy(begin + at, "a line of the log", 17);
    return unused;
}

int main(void) {
    pthread_t thread;
    atomic_store(&log_begin, mapped());
    pthread_create(&thread, NULL, writer, NULL);
    char *old = atomic_exchange(&log_begin, mapped());
    atomic_store(&used, 0);
    munmap(old, BYTES);
    pthread_join(thread, NULL);
    return 0;
}
