// A race in a forked child only.
// Shows: threads of a child that count without a lock, while the parent's own do it with one.
// True:  the parent waits for the child, which joins its threads; the parent's thread and the child's are of different processes.
// expect: race 13 13 co-enabled
#include <pthread.h>
#include <sys/wait.h>
#include <unistd.h>

static pthread_mutex_t m = PTHREAD_MUTEX_INITIALIZER;
static int counter;

static void *count(void *unused) {
    counter++;
    return NULL;
}

static void *count_locked(void *unused) {
    pthread_mutex_lock(&m);
    counter++;
    pthread_mutex_unlock(&m);
    return NULL;
}

static void run(void *(*task)(void *)) {
    pthread_t threads[2];
    for (int i = 0; i < 2; i++)
        pthread_create(&threads[i], NULL, task, NULL);
    for (int i = 0; i < 2; i++)
        pthread_join(threads[i], NULL);
}

int main(void) {
    run(count_locked);
    pid_t child = fork();
    if (child == 0) {
        run(count);
        _exit(5);
    }
    run(count_locked);
    int status = 0;
    waitpid(child, &status, 0);
    return counter == 4 && WIFEXITED(status) && WEXITSTATUS(status) == 5 ? 0 : 1;
}
