// main returns at once, without having joined its threads.
// Shows: other threads run before the process ends, up to their ends.
// True:  both change the counter with nothing between them.
// expect: race 11 11 co-enabled
#include <pthread.h>
#include <stddef.h>

static int counter;

static void *count(void *unused) {
    counter++;
    return NULL;
}

int main(void) {
    pthread_t one, two;
    pthread_create(&one, NULL, count, NULL);
    pthread_create(&two, NULL, count, NULL);
    return 0;
}
