// Cancellation of every kind of wait.
// Shows: read, poll, select, recv, sem_wait, sleep, pthread_join, pause and write that end by forced unwinding, before they
//        wait or while.
// True:  the cleanup handler counts under a lock; it is in place before the first cancellation point, so it runs once a thread.
// expect: none
#define _GNU_SOURCE
#include <poll.h>
#include <pthread.h>
#include <semaphore.h>
#include <stdlib.h>
#include <sys/select.h>
#include <sys/socket.h>
#include <unistd.h>

enum { READ, POLL, SELECT, RECV, SEMAPHORE, SLEEP, JOIN, PAUSE, WRITE, KINDS };

static int ends[2], sockets[2];
static sem_t never;
static pthread_t sleeper;
static pthread_mutex_t m = PTHREAD_MUTEX_INITIALIZER;
static int cleaned;
static const char block[4096];

static void clean(void *unused) {
    pthread_mutex_lock(&m);
    cleaned++;
    pthread_mutex_unlock(&m);
}

static void *sleep_long(void *unused) {
    for (;;)
        sleep(1000);
    return NULL;
}

static int wait_once(long kind) {
    char byte;
    struct pollfd one = {.fd = ends[0], .events = POLLIN};
    fd_set set;
    switch (kind) {
    case READ:
        return read(ends[0], &byte, 1);
    case POLL:
        return poll(&one, 1, -1);
    case SELECT:
        FD_ZERO(&set);
        FD_SET(ends[0], &set);
        return select(ends[0] + 1, &set, NULL, NULL, NULL);
    case RECV:
        return recv(sockets[0], &byte, 1, 0);
    case SEMAPHORE:
        return sem_wait(&never);
    case SLEEP:
        return sleep(1000);
    case JOIN:
        return pthread_join(sleeper, NULL);
    case PAUSE:
        return pause();
    default:
        return write(ends[1], block, sizeof block);
    }
}

static void *work(void *kind) {
    pthread_cleanup_push(clean, NULL);
    pthread_setcancelstate(PTHREAD_CANCEL_DISABLE, NULL);
    usleep(1000);
    pthread_setcancelstate(PTHREAD_CANCEL_ENABLE, NULL);
    for (;;)
        wait_once((long)kind);
    pthread_cleanup_pop(0);
    return NULL;
}

int main(void) {
    if (pipe(ends) != 0 || socketpair(AF_UNIX, SOCK_STREAM, 0, sockets) != 0)
        return 20;
    sem_init(&never, 0, 0);
    pthread_create(&sleeper, NULL, sleep_long, NULL);
    for (long kind = 0; kind < KINDS; kind++)
        for (int late = 0; late < 2; late++) {
            pthread_t thread;
            void *result;
            pthread_create(&thread, NULL, work, (void *)kind);
            if (late)
                usleep(20000);
            pthread_cancel(thread);
            pthread_join(thread, &result);
            if (result != PTHREAD_CANCELED)
                return 1 + kind;
        }
    pthread_cancel(sleeper);
    pthread_join(sleeper, NULL);
    return cleaned == 2 * KINDS ? 0 : 21;
}
