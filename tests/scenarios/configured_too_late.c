// shows: main writes a setting after it has started the thread that reads it
// bugs: race
#include <pthread.h>

static int setting, seen;

static void *task(void *unused) {
    seen = setting;
    return unused;
}

int main(void) {
    pthread_t threads[1];
    pthread_create(&threads[0], NULL, task, NULL);
    setting = 1;
    for (int i = 0; i < 1; i++) pthread_join(threads[i], NULL);
    return seen > 1;
}
