// poll and select, with and without time-outs.
// Shows: waits in the kernel that end by time, and ones that end by another thread's write.
// True:  nothing is written before the time-outs are over; then exactly one byte is.
// expect: none
#include <poll.h>
#include <pthread.h>
#include <semaphore.h>
#include <sys/select.h>
#include <unistd.h>

static int ends[2];
static sem_t timed_out;

static void *write_late(void *unused) {
    sem_wait(&timed_out);
    return write(ends[1], "x", 1) == 1 ? NULL : (void *)1;
}

int main(void) {
    if (pipe(ends) != 0)
        return 2;
    sem_init(&timed_out, 0, 0);
    pthread_t thread;
    pthread_create(&thread, NULL, write_late, NULL);

    struct pollfd wanted = {.fd = ends[0], .events = POLLIN};
    int failed = poll(&wanted, 1, 10) != 0;
    fd_set set;
    FD_ZERO(&set);
    FD_SET(ends[0], &set);
    struct timeval limit = {0, 10000};
    failed += select(ends[0] + 1, &set, NULL, NULL, &limit) != 0;

    sem_post(&timed_out);
    failed += poll(&wanted, 1, -1) != 1 || !(wanted.revents & POLLIN);
    FD_ZERO(&set);
    FD_SET(ends[0], &set);
    failed += select(ends[0] + 1, &set, NULL, NULL, NULL) != 1;
    char byte;
    failed += read(ends[0], &byte, 1) != 1 || byte != 'x';
    void *result;
    pthread_join(thread, &result);
    return failed || result ? 1 : 0;
}
