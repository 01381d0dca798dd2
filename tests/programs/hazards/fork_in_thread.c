// fork in a thread, and a lock whose holder does not exist in the child.
// Shows: a child whose first thread was no first thread: it returns from its start routine, which ends the process.
// True:  the holder has the lock when the child is made, since a barrier says so; in the child nobody ever gives it back.
// expect: none
#include <errno.h>
#include <pthread.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

static pthread_mutex_t held = PTHREAD_MUTEX_INITIALIZER;
static pthread_barrier_t barrier;
static int result = 1;

static void *hold(void *unused) {
    pthread_mutex_lock(&held);
    pthread_barrier_wait(&barrier);
    pthread_barrier_wait(&barrier);
    pthread_mutex_unlock(&held);
    return NULL;
}

static void *end_child(void *unused) {
    return NULL;
}

static void *make_child(void *unused) {
    pthread_barrier_wait(&barrier);
    pid_t child = fork();
    if (child == 0) {
        struct timespec soon;
        clock_gettime(CLOCK_REALTIME, &soon);
        soon.tv_nsec += 1000;
        if (soon.tv_nsec >= 1000000000)
            soon.tv_nsec = 999999999;
        pthread_t thread;
        if (pthread_mutex_timedlock(&held, &soon) != ETIMEDOUT || pthread_create(&thread, NULL, end_child, NULL) != 0)
            _exit(1);
        pthread_join(thread, NULL);
        return NULL;
    }
    int status = 0;
    waitpid(child, &status, 0);
    result = WIFEXITED(status) && WEXITSTATUS(status) == 0 ? 0 : 2;
    pthread_barrier_wait(&barrier);
    return NULL;
}

int main(void) {
    pthread_t threads[2];
    pthread_barrier_init(&barrier, NULL, 2);
    pthread_create(&threads[0], NULL, hold, NULL);
    pthread_create(&threads[1], NULL, make_child, NULL);
    for (int i = 0; i < 2; i++)
        pthread_join(threads[i], NULL);
    return result;
}
