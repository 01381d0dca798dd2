// shows: two threads wait for a start that main broadcasts
// bugs: none
#include <pthread.h>

static int go, data, seen[2];
static pthread_mutex_t m = PTHREAD_MUTEX_INITIALIZER;
static pthread_cond_t c = PTHREAD_COND_INITIALIZER;

static void *waits0(void *unused) {
    pthread_mutex_lock(&m);
    while (!go) pthread_cond_wait(&c, &m);
    pthread_mutex_unlock(&m);
    seen[0] = data;
    return unused;
}

static void *waits1(void *unused) {
    pthread_mutex_lock(&m);
    while (!go) pthread_cond_wait(&c, &m);
    pthread_mutex_unlock(&m);
    seen[1] = data;
    return unused;
}

int main(void) {
    pthread_t threads[2];
    pthread_create(&threads[0], NULL, waits0, NULL);
    pthread_create(&threads[1], NULL, waits1, NULL);
    data = 7;
    pthread_mutex_lock(&m);
    go = 1;
    pthread_cond_broadcast(&c);
    pthread_mutex_unlock(&m);
    for (int i = 0; i < 2; i++) pthread_join(threads[i], NULL);
    return seen[0] + seen[1] == 14 ? 0 : 1;
}
