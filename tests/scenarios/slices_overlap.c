// shows: the slices of two threads share one element
// bugs: race
#include <pthread.h>

static int items[9];

static void *lower(void *unused) {
    for (int i = 0; i <= 4; i++) items[i]++;
    return unused;
}

static void *upper(void *unused) {
    for (int i = 4; i < 9; i++) items[i]++;
    return unused;
}

int main(void) {
    pthread_t threads[2];
    pthread_create(&threads[0], NULL, lower, NULL);
    pthread_create(&threads[1], NULL, upper, NULL);
    for (int i = 0; i < 2; i++) pthread_join(threads[i], NULL);
    return 0;
}
