// Data handed over through processes and what is registered for them.
// Shows: a thread that waits for a process that another one started or ended; handlers of fork that another thread registered.
// True:  the second access is behind the end of the process, and behind the registration.
// expect: none
#define _GNU_SOURCE
#include <pthread.h>
#include <signal.h>
#include <sys/wait.h>
#include <unistd.h>

static int started, ended, registered, prepared;
static pid_t sleeper;

static void prepare(void) {
    prepared += registered;
}

static void *starts(void *unused) {
    started = 1;
    if (fork() == 0)
        _exit(0);
    return unused;
}

static void *ends(void *unused) {
    ended = 1;
    kill(sleeper, SIGKILL);
    return unused;
}

static void *registers(void *unused) {
    registered = 1;
    pthread_atfork(prepare, NULL, NULL);
    return unused;
}

static void *awaits_start(void *unused) {
    // Until there is one.
    while (wait(NULL) < 0)
        usleep(1000);
    started += 1;
    return unused;
}

static void *awaits_end(void *unused) {
    waitpid(sleeper, NULL, 0);
    ended += 1;
    return unused;
}

static void run(void *(*one)(void *), void *(*other)(void *)) {
    pthread_t threads[2];
    pthread_create(&threads[0], NULL, other, NULL);
    pthread_create(&threads[1], NULL, one, NULL);
    pthread_join(threads[1], NULL);
    pthread_join(threads[0], NULL);
}

int main(void) {
    run(starts, awaits_start);
    sleeper = fork();
    if (sleeper == 0) {
        pause();
        _exit(0);
    }
    run(ends, awaits_end);
    pthread_t thread;
    pthread_create(&thread, NULL, registers, NULL);
    pthread_join(thread, NULL);
    pid_t child = fork();
    if (child == 0)
        _exit(0);
    waitpid(child, NULL, 0);
    return started + ended + prepared == 5 ? 0 : 1;
}
