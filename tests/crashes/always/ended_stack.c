// crashes: the answer lies in the stack of a thread that has ended, and whose stack is given back
// story: at the address was
#define _GNU_SOURCE
#include <pthread.h>
#include <sys/mman.h>

enum { BYTES = 1 << 20 };
static long *answer;

static void *worker(void *unused) {
    long found = 42;
    answer = &found;
    return unused;
}

int main(void) {
    pthread_t thread;
    pthread_attr_t attributes;
    void *stack = mmap(NULL, BYTES, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_STACK, -1, 0);
    pthread_attr_init(&attributes);
    pthread_attr_setstack(&attributes, stack, BYTES);
    pthread_create(&thread, &attributes, worker, NULL);
    pthread_join(thread, NULL);
    munmap(stack, BYTES);
    return *answer != 42;
}
