// fork and exec of this very program.
// Shows: an instrumented child in the parent's environment, which must not write into the parent's recording.
// True:  the child ends with 9, the parent with 0.
// expect: none
#include <pthread.h>
#include <stdlib.h>
#include <sys/wait.h>
#include <unistd.h>

static pthread_mutex_t m = PTHREAD_MUTEX_INITIALIZER;
static int counter;

static void *work(void *unused) {
    pthread_mutex_lock(&m);
    counter++;
    pthread_mutex_unlock(&m);
    return NULL;
}

int main(int argc, char **argv) {
    pthread_t thread;
    pthread_create(&thread, NULL, work, NULL);
    if (argc > 1) {
        pthread_join(thread, NULL);
        return 9;
    }
    pid_t child = fork();
    if (child == 0) {
        execl("/proc/self/exe", argv[0], "child", (char *)NULL);
        _exit(1);
    }
    pthread_join(thread, NULL);
    int status = 0;
    waitpid(child, &status, 0);
    return counter == 1 && WIFEXITED(status) && WEXITSTATUS(status) == 9 ? 0 : 1;
}
