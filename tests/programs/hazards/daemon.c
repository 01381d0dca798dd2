// A program that becomes a daemon, by its own double fork and by the library's.
// Shows: processes that outlive those that made them, each with threads.
// True:  the first process waits for nobody; all others end by themselves.
// expect: none
#define _DEFAULT_SOURCE
#include <pthread.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

static pthread_mutex_t m = PTHREAD_MUTEX_INITIALIZER;
static int counter;

static void *count(void *unused) {
    for (int i = 0; i < 20; i++) {
        pthread_mutex_lock(&m);
        counter++;
        pthread_mutex_unlock(&m);
    }
    return NULL;
}

static void work(void) {
    pthread_t threads[2];
    for (int i = 0; i < 2; i++)
        pthread_create(&threads[i], NULL, count, NULL);
    for (int i = 0; i < 2; i++)
        pthread_join(threads[i], NULL);
}

int main(void) {
    pid_t child = fork();
    if (child == 0) {
        setsid();
        if (fork() != 0)
            _exit(3);
        work();
        _exit(0);
    }
    int status = 0;
    waitpid(child, &status, 0);
    if (!WIFEXITED(status) || WEXITSTATUS(status) != 3)
        return 1;
    child = syscall(SYS_fork);
    if (child == 0) {
        work();
        _exit(4);
    }
    waitpid(child, &status, 0);
    if (!WIFEXITED(status) || WEXITSTATUS(status) != 4)
        return 2;
    if (daemon(1, 1) != 0)
        return 1;
    work();
    return counter == 40 ? 0 : 1;
}
