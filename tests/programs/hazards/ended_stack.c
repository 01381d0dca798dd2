// A thread's variable outlives the thread, whose stack is too large for libc to keep.
// Shows: a crash in every run: the stack is given back to the system.
// True:  the thread has ended and is joined; main still writes to its variable.
// expect: failure crashed
// tells: at the address was the stack of thread 0, which had ended
// tells: which the main thread at main (ended_stack.c:24) had joined
#include <pthread.h>
#include <stdlib.h>

static int *answer;

static void *work(void *unused) {
    int local = 1;
    answer = &local;
    return unused;
}

int main(void) {
    pthread_attr_t large;
    pthread_t thread;
    pthread_attr_init(&large);
    pthread_attr_setstacksize(&large, 128 << 20);
    pthread_create(&thread, &large, work, NULL);
    pthread_join(thread, NULL);
    *answer = 2;
    return 1;
}
