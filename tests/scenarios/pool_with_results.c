// shows: tasks of a pool have places of their own for results
// bugs: none
#include <pthread.h>

static int next, results[4];
static pthread_mutex_t m = PTHREAD_MUTEX_INITIALIZER;

static void *worker(void *unused) {
    for (;;) {
        pthread_mutex_lock(&m);
        int task = next < 4 ? next++ : -1;
        pthread_mutex_unlock(&m);
        if (task < 0) break;
        results[task] = task;
    }
    return unused;
}

int main(void) {
    pthread_t threads[2];
    pthread_create(&threads[0], NULL, worker, NULL);
    pthread_create(&threads[1], NULL, worker, NULL);
    for (int i = 0; i < 2; i++) pthread_join(threads[i], NULL);
    return results[0] + results[1] + results[2] + results[3] == 6 ? 0 : 1;
}
