// quick_exit.
// Shows: at_quick_exit handlers run, atexit handlers do not.
// True:  the status tells which handler ran.
// expect: none
#include <pthread.h>
#include <stdlib.h>
#include <unistd.h>

static void wrong(void) {
    _exit(1);
}

static void right(void) {
    _exit(5);
}

static void *work(void *unused) {
    quick_exit(2);
}

int main(void) {
    pthread_t thread;
    atexit(wrong);
    at_quick_exit(right);
    pthread_create(&thread, NULL, work, NULL);
    pthread_join(thread, NULL);
    return 1;
}
