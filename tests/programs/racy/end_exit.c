// exit while detached workers run.
// Shows: they run before the first handler of exit.
// True:  both change the counter with nothing between them; the handler runs afterwards, or side by side with them.
// expect: race 14 14 co-enabled
// allow: race 14 19 co-enabled
#include <pthread.h>
#include <stdlib.h>
#include <unistd.h>

static int counter;

static void *count(void *unused) {
    pthread_detach(pthread_self());
    counter++;
    return NULL;
}

static void show(void) {
    if (write(1, counter > 2 ? "many\n" : "some\n", 5) != 5)
        _exit(1);
}

int main(void) {
    pthread_t one, two;
    atexit(show);
    pthread_create(&one, NULL, count, NULL);
    pthread_create(&two, NULL, count, NULL);
    exit(3);
}
