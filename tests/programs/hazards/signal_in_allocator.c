// Signals that interrupt the allocator while another thread forks.
// Shows: a fork takes the allocator's locks; a handler above a call that holds one must not wait for anything that the forking
//        thread holds.
// True:  the handler writes to a descriptor only, so that it may run anywhere; blocks stay with their threads.
// expect: none
#include <malloc.h>
#include <pthread.h>
#include <sched.h>
#include <signal.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <sys/eventfd.h>
#include <sys/wait.h>
#include <unistd.h>

enum { CHILDREN = 60, BLOCKS = 16 };

static atomic_int done;
static int events;

static void tell(int number) {
    eventfd_write(events, 1);
}

static void *allocate(void *unused) {
    char *blocks[BLOCKS] = {0};
    for (int i = 0; !atomic_load(&done); i++) {
        free(blocks[i % BLOCKS]);
        blocks[i % BLOCKS] = malloc(50000 + i % 7 * 10000);
    }
    for (int i = 0; i < BLOCKS; i++)
        free(blocks[i]);
    return NULL;
}

static void *interrupt(void *threads) {
    for (int i = 0; !atomic_load(&done); i++) {
        pthread_kill(((pthread_t *)threads)[i % 2], SIGUSR1);
        sched_yield();
    }
    return NULL;
}

int main(void) {
    // One lock, under which every call asks the system for memory or gives it back.
    mallopt(M_ARENA_MAX, 1);
    mallopt(M_MMAP_THRESHOLD, 1 << 20);
    mallopt(M_TRIM_THRESHOLD, 0);
    mallopt(M_TOP_PAD, 0);
    events = eventfd(0, EFD_NONBLOCK);
    struct sigaction action = {.sa_handler = tell, .sa_flags = SA_RESTART};
    sigaction(SIGUSR1, &action, NULL);
    pthread_t threads[3];
    for (int i = 0; i < 2; i++)
        pthread_create(&threads[i], NULL, allocate, NULL);
    pthread_create(&threads[2], NULL, interrupt, threads);
    int failed = 0;
    for (int i = 0; i < CHILDREN; i++) {
        pid_t child = fork();
        if (child == 0)
            _exit(0);
        int status = 1;
        failed |= child < 0 || waitpid(child, &status, 0) != child || status != 0;
    }
    atomic_store(&done, 1);
    pthread_join(threads[2], NULL);
    for (int i = 0; i < 2; i++)
        pthread_join(threads[i], NULL);
    return failed;
}
