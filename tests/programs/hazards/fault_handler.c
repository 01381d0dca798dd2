// A handler of SIGSEGV that jumps back.
// Shows: faults in the program's own store, in strlen and in memcpy, each left by siglongjmp, after which locks work as before.
// True:  each thread faults on purpose, at addresses of its own where nothing is mapped or allowed, and holds no lock then.
// expect: none
#define _GNU_SOURCE
#include <pthread.h>
#include <setjmp.h>
#include <signal.h>
#include <stddef.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

enum { THREADS = 2, ROUNDS = 20, WAYS = 3, PLACES = 2, PAGE = 4096 };

static char *places[THREADS][PLACES];
static __thread sigjmp_buf back;
static __thread char *volatile expected;
static volatile size_t length;
static pthread_mutex_t m = PTHREAD_MUTEX_INITIALIZER;
static int counter;

static void handle(int number, siginfo_t *info, void *context) {
    if (info->si_addr != expected)
        _exit(9);
    siglongjmp(back, 1);
}

static void fault(int way, char *place) {
    switch (way) {
    case 0:
        *(volatile char *)place = 1;
        break;
    case 1:
        length = strlen(place);
        break;
    default:
        memcpy(place, "abc", 3);
    }
}

static int survives(int way, char *place) {
    expected = place;
    if (sigsetjmp(back, 1) == 0) {
        fault(way, place);
        return 0;
    }
    pthread_mutex_lock(&m);
    counter++;
    pthread_mutex_unlock(&m);
    return 1;
}

static void *work(void *argument) {
    char **mine = argument;
    for (int round = 0; round < ROUNDS; round++)
        for (int way = 0; way < WAYS; way++)
            for (int place = 0; place < PLACES; place++)
                if (!survives(way, mine[place]))
                    return (void *)1;
    return NULL;
}

int main(void) {
    struct sigaction action = {.sa_sigaction = handle, .sa_flags = SA_SIGINFO}, old;
    if (sigaction(SIGSEGV, &action, &old) != 0 || old.sa_handler != SIG_DFL)
        return 1;
    if (sigaction(SIGSEGV, NULL, &old) != 0 || old.sa_sigaction != handle || !(old.sa_flags & SA_SIGINFO))
        return 2;
    char *guarded = mmap(NULL, 3 * PAGE, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    if (guarded == MAP_FAILED)
        return 3;
    places[0][0] = NULL;
    places[0][1] = guarded;
    places[1][0] = guarded + PAGE;
    places[1][1] = guarded + 2 * PAGE;
    pthread_t threads[THREADS];
    void *result;
    for (int i = 0; i < THREADS; i++)
        pthread_create(&threads[i], NULL, work, places[i]);
    for (int i = 0; i < THREADS; i++) {
        pthread_join(threads[i], &result);
        if (result != NULL)
            return 4;
    }
    return counter == THREADS * ROUNDS * WAYS * PLACES ? 0 : 5;
}
