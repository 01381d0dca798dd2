// A child that holds a lock from before it was forked.
// Shows: data that only a lock taken by the parent protects in the child.
// True:  the child's first thread holds the lock since the fork, until it has written.
// expect: none
#include <pthread.h>
#include <sys/wait.h>
#include <unistd.h>

static pthread_mutex_t m = PTHREAD_MUTEX_INITIALIZER;
static int protected_by_it;

static void *count(void *unused) {
    pthread_mutex_lock(&m);
    protected_by_it++;
    pthread_mutex_unlock(&m);
    return NULL;
}

int main(void) {
    pthread_mutex_lock(&m);
    pid_t child = fork();
    if (child == 0) {
        pthread_t thread;
        pthread_create(&thread, NULL, count, NULL);
        protected_by_it = 7;
        pthread_mutex_unlock(&m);
        pthread_join(thread, NULL);
        _exit(protected_by_it);
    }
    pthread_mutex_unlock(&m);
    int status = 0;
    waitpid(child, &status, 0);
    return WIFEXITED(status) && WEXITSTATUS(status) == 8 ? 0 : 1;
}
