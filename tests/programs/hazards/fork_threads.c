// A forked child that creates threads of its own.
// Shows: a child that is as concurrent as its parent.
// True:  the fork happens before the parent has a second thread; each process joins its own.
// expect: none
#include <pthread.h>
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

static void run(int threads) {
    pthread_t all[4];
    for (int i = 0; i < threads; i++)
        pthread_create(&all[i], NULL, work, NULL);
    for (int i = 0; i < threads; i++)
        pthread_join(all[i], NULL);
}

int main(void) {
    pid_t child = fork();
    run(child == 0 ? 3 : 4);
    if (child == 0)
        _exit(counter);
    int status = 0;
    waitpid(child, &status, 0);
    return counter == 4 && WIFEXITED(status) && WEXITSTATUS(status) == 3 ? 0 : 1;
}
