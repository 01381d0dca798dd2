// Signals of another thread that arrive before a wait, or in it.
// Shows: handlers that run right before or inside read, sem_wait, poll and pause; a pipe whose two ends are opened by two
//        threads.
// True:  `caught` is atomic; handlers restart what they interrupt, and a signal that might come too early is sent again.
// expect: none
#define _GNU_SOURCE
#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <pthread.h>
#include <semaphore.h>
#include <signal.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/stat.h>
#include <unistd.h>

enum { READ, SEMAPHORE, POLL, PAUSE, KINDS };
enum { ROUNDS = 4 };

static int ends[2];
static sem_t ready, go;
static atomic_int caught, left;
static char folder[] = P_tmpdir "/signals-XXXXXX";
static char fifo[sizeof folder + 8];

static void handle(int number) {
    atomic_fetch_add(&caught, 1);
}

static void *wait_once(void *kind) {
    char byte;
    struct pollfd one = {.fd = ends[0], .events = POLLIN};
    sem_post(&ready);
    switch ((long)kind) {
    case READ:
        return (void *)(read(ends[0], &byte, 1) == 1);
    case SEMAPHORE:
        while (sem_wait(&go) != 0)
            ;
        return (void *)1;
    case POLL:
        while (poll(&one, 1, -1) != 1)
            ;
        return (void *)(read(ends[0], &byte, 1) == 1);
    default:
        return (void *)(pause() == -1 && errno == EINTR);
    }
}

static int works(long kind) {
    pthread_t thread;
    void *result;
    int before = atomic_load(&caught);
    pthread_create(&thread, NULL, wait_once, (void *)kind);
    sem_wait(&ready);
    if (kind == PAUSE) {
        do {
            pthread_kill(thread, SIGUSR1);
            usleep(1000);
        } while (pthread_tryjoin_np(thread, &result) != 0);
        return (long)result;
    }
    pthread_kill(thread, SIGUSR1);
    while (atomic_load(&caught) == before)
        usleep(1000);
    if (kind == SEMAPHORE)
        sem_post(&go);
    else if (write(ends[1], "x", 1) != 1)
        return 0;
    pthread_join(thread, &result);
    return (long)result;
}

static void *open_to_write(void *unused) {
    int descriptor = open(fifo, O_WRONLY);
    atomic_fetch_add(&left, 1);
    close(descriptor);
    return NULL;
}

static int meets(void) {
    pthread_t thread;
    pthread_create(&thread, NULL, open_to_write, NULL);
    int descriptor = open(fifo, O_RDONLY);
    atomic_fetch_add(&left, 1);
    pthread_join(thread, NULL);
    close(descriptor);
    return descriptor >= 0;
}

int main(void) {
    struct sigaction action = {.sa_handler = handle, .sa_flags = SA_RESTART};
    if (pipe(ends) != 0 || mkdtemp(folder) == NULL)
        return 10;
    snprintf(fifo, sizeof fifo, "%s/fifo", folder);
    if (mkfifo(fifo, 0600) != 0)
        return 11;
    sem_init(&ready, 0, 0);
    sem_init(&go, 0, 0);
    sigaction(SIGUSR1, &action, NULL);
    int failed = 0;
    for (int round = 0; round < ROUNDS; round++) {
        for (long kind = 0; kind < KINDS; kind++)
            if (!works(kind))
                failed = 1 + kind;
        if (!meets())
            failed = 9;
    }
    unlink(fifo);
    rmdir(folder);
    return failed != 0 ? failed : atomic_load(&left) == 2 * ROUNDS ? 0 : 12;
}
