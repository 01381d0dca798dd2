// abort in a thread.
// Shows: a program that ends by SIGABRT while main waits.
// True:  no handler is installed.
// expect: failure crashed
#include <pthread.h>
#include <stdlib.h>

static void *work(void *unused) {
    abort();
}

int main(void) {
    pthread_t thread;
    pthread_create(&thread, NULL, work, NULL);
    pthread_join(thread, NULL);
    return 1;
}
