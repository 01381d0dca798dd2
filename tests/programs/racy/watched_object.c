// Two threads change an object that the program watches itself, as a library does whose objects are no plain memory: it tells of
// each access (LLVM's __tsan_external_write), once from a function without instrumentation, once from one with it.
// Shows: a race on the object's first byte, though no instrumented code touches it.
// True:  nothing orders the two threads.
// expect: race 28 23 co-enabled
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>

void *__tsan_external_register_tag(const char *name);
void __tsan_external_write(void *object, void *called_from, void *tag);

static void *tag;

__attribute__((no_sanitize("thread"), noinline))
static void put(void *drawer) {
    __tsan_external_write(drawer, __builtin_return_address(0), tag);
    asm volatile("");
}

__attribute__((noinline))
static void take(void *drawer) {
    __tsan_external_write(drawer, __builtin_return_address(0), tag);
}

static void *fill(void *drawer) {
    puts("filled");
    put(drawer);
    return NULL;
}

static void *empty(void *drawer) {
    take(drawer);
    puts("emptied");
    return NULL;
}

int main(void) {
    tag = __tsan_external_register_tag("drawer");
    void *drawer = malloc(16);
    pthread_t one, two;
    pthread_create(&one, NULL, fill, drawer);
    pthread_create(&two, NULL, empty, drawer);
    pthread_join(one, NULL);
    pthread_join(two, NULL);
    free(drawer);
    return 0;
}
