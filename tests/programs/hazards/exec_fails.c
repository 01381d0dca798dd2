// A call of exec that fails: the thread goes on as if nothing had been.
// Shows: a thread that another one spins for, once it has asked in vain for another program.
// True:  the process ends with 0; the loop ends with the store behind the calls.
// expect: none
#include <pthread.h>
#include <sched.h>
#include <stdatomic.h>
#include <unistd.h>

static atomic_int went_on;

static void *work(void *unused) {
    char *arguments[] = {"missing", NULL};
    execv("/nonexistent/program", arguments);
    execl("/nonexistent/program", "missing", (char *)NULL);
    sched_yield();
    atomic_store(&went_on, 1);
    return NULL;
}

int main(void) {
    pthread_t thread;
    pthread_create(&thread, NULL, work, NULL);
    while (!atomic_load(&went_on))
        sched_yield();
    pthread_join(thread, NULL);
    return 0;
}
