// A thread that makes no event at all when the process ends.
// Shows: the end does not wait for it for ever.
// True:  the loop has no access; nothing else is shared.
// expect: none
#include <pthread.h>
#include <stddef.h>

static void *loop(void *unused) {
    __asm__ volatile("1: pause\n\tjmp 1b");
    return NULL;
}

int main(void) {
    pthread_t thread;
    pthread_create(&thread, NULL, loop, NULL);
    return 0;
}
