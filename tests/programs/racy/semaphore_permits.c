// A semaphore that should begin with nothing and begins with one.
// Shows: the wait does not need the post before it, as the recording says what the semaphore began with.
// True:  the reader's wait may succeed before the writer has written.
// expect: race 13 19 co-enabled
#include <pthread.h>
#include <semaphore.h>
#include <stdio.h>

static sem_t written;
static int message;

static void *writer(void *unused) {
    message = 42;
    sem_post(&written);
    return NULL;
}
static void *reader(void *unused) {
    sem_wait(&written);
    int seen = message;
    return seen < 0 ? &written : NULL;
}

int main(void) {
    pthread_t one, two;
    sem_init(&written, 0, 1);
    pthread_create(&one, NULL, writer, NULL);
    pthread_create(&two, NULL, reader, NULL);
    pthread_join(one, NULL);
    pthread_join(two, NULL);
    sem_destroy(&written);
    return 0;
}
