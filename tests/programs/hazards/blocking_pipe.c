// A read that blocks until another thread writes.
// Shows: a thread that must give up its turn before it waits in the kernel.
// True:  main writes only after the reader has announced itself; the reader may already be blocked then, or not yet.
// expect: none
#include <pthread.h>
#include <semaphore.h>
#include <unistd.h>

static int ends[2];
static sem_t reader_ready;

static void *read_one(void *argument) {
    char *byte = argument;
    sem_post(&reader_ready);
    if (read(ends[0], byte, 1) != 1)
        *byte = 0;
    return NULL;
}

int main(void) {
    char byte = 0;
    if (pipe(ends) != 0)
        return 2;
    sem_init(&reader_ready, 0, 0);
    pthread_t thread;
    pthread_create(&thread, NULL, read_one, &byte);
    sem_wait(&reader_ready);
    if (write(ends[1], "x", 1) != 1)
        return 2;
    pthread_join(thread, NULL);
    return byte == 'x' ? 0 : 1;
}
