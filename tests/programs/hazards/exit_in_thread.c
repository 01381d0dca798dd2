// exit in a thread while others wait and run.
// Shows: atexit handlers and destructors run by a thread other than main.
// True:  main waits for ever; the exit status is the thread's.
// expect: none
#include <pthread.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <unistd.h>

static atomic_long turns;

static void last_words(void) {
    if (write(1, "bye\n", 4) != 4)
        _exit(1);
}

static void *spin(void *unused) {
    for (;;)
        atomic_fetch_add(&turns, 1);
    return NULL;
}

static void *leave(void *unused) {
    while (atomic_load(&turns) < 100) {
    }
    exit(3);
}

int main(void) {
    pthread_t one, two;
    atexit(last_words);
    pthread_create(&one, NULL, spin, NULL);
    pthread_create(&two, NULL, leave, NULL);
    pthread_join(one, NULL);
    return 1;
}
