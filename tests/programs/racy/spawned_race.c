// A race in a grandchild: posix_spawn of this very program, which forks.
// Shows: processes below processes, and a finding that belongs to the last of them.
// True:  each process waits for the one it made.
// expect: race 14 29 co-enabled
#include <pthread.h>
#include <spawn.h>
#include <sys/wait.h>
#include <unistd.h>

extern char **environ;
static volatile int shared;

static void *write_it(void *unused) {
    shared = 1;
    return NULL;
}

static int result_of(pid_t child) {
    int status = 0;
    waitpid(child, &status, 0);
    return WIFEXITED(status) ? WEXITSTATUS(status) : -1;
}

static int spawned(void) {
    pid_t child = fork();
    if (child == 0) {
        pthread_t thread;
        pthread_create(&thread, NULL, write_it, NULL);
        shared = 2;
        pthread_join(thread, NULL);
        return 6;
    }
    return result_of(child) + 1;
}

int main(int count, char **arguments) {
    if (count > 1)
        return spawned();
    char *vector[] = {arguments[0], "again", NULL};
    pid_t child;
    if (posix_spawn(&child, "/proc/self/exe", NULL, NULL, vector, environ) != 0)
        return 1;
    return result_of(child) == 7 ? 0 : 1;
}
