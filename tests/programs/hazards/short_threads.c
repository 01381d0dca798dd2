// 300 threads, one after the other.
// Shows: stacks and thread ids that come back, and tables that must not run full.
// True:  each thread is joined before the next one is created.
// expect: none
#include <pthread.h>

static int counter;

static void *work(void *unused) {
    counter++;
    return NULL;
}

int main(void) {
    for (int i = 0; i < 300; i++) {
        pthread_t thread;
        if (pthread_create(&thread, NULL, work, NULL) != 0)
            return 2;
        pthread_join(thread, NULL);
    }
    return counter == 300 ? 0 : 1;
}
