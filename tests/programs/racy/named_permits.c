// A semaphore opened by name, twice, with one permit too many.
// Shows: both names lead to one semaphore, which goes on where it was; its count is known.
// True:  the reader's wait may succeed before the writer has written.
// expect: race 15 21 co-enabled
#include <fcntl.h>
#include <pthread.h>
#include <semaphore.h>
#include <stdio.h>
#include <unistd.h>

static sem_t *first, *second;
static int message;

static void *writer(void *unused) {
    message = 42;
    sem_post(first);
    return NULL;
}
static void *reader(void *unused) {
    sem_wait(second);
    int seen = message;
    return seen < 0 ? &message : NULL;
}

int main(void) {
    char name[32];
    pthread_t one, two;
    snprintf(name, sizeof name, "/named-permits-%010d", (int)getpid());
    first = sem_open(name, O_CREAT | O_EXCL, 0600, 1);
    second = sem_open(name, O_CREAT, 0600, 7);
    if (first == SEM_FAILED || second != first)
        return 1;
    sem_unlink(name);
    pthread_create(&one, NULL, writer, NULL);
    pthread_create(&two, NULL, reader, NULL);
    pthread_join(one, NULL);
    pthread_join(two, NULL);
    sem_close(first);
    sem_close(second);
    return 0;
}
