// A deadlock that only a forked child can run into.
// Shows: two threads of a child that take two locks in opposite orders; in the parent one thread does both, one after the other.
// True:  the child ends with 5 unless its threads block each other, in which case it never ends.
// expect: deadlock 14 22
#include <pthread.h>
#include <sys/wait.h>
#include <unistd.h>

static pthread_mutex_t a = PTHREAD_MUTEX_INITIALIZER;
static pthread_mutex_t b = PTHREAD_MUTEX_INITIALIZER;

static void *forwards(void *unused) {
    pthread_mutex_lock(&a);
    pthread_mutex_lock(&b);
    pthread_mutex_unlock(&b);
    pthread_mutex_unlock(&a);
    return NULL;
}

static void *backwards(void *unused) {
    pthread_mutex_lock(&b);
    pthread_mutex_lock(&a);
    pthread_mutex_unlock(&a);
    pthread_mutex_unlock(&b);
    return NULL;
}

int main(void) {
    forwards(NULL);
    backwards(NULL);
    pid_t child = fork();
    if (child == 0) {
        pthread_t threads[2];
        pthread_create(&threads[0], NULL, forwards, NULL);
        pthread_create(&threads[1], NULL, backwards, NULL);
        pthread_join(threads[0], NULL);
        pthread_join(threads[1], NULL);
        _exit(5);
    }
    int status = 0;
    waitpid(child, &status, 0);
    return WIFEXITED(status) && WEXITSTATUS(status) == 5 ? 0 : 1;
}
