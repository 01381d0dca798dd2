// shows: main waits for one thread and reads the results of two
// bugs: race
#include <pthread.h>

static int results[2];

static void *one(void *unused) {
    results[0] = 1;
    return unused;
}

static void *two(void *unused) {
    results[1] = 1;
    return unused;
}

int main(void) {
    pthread_t threads[2];
    pthread_create(&threads[0], NULL, one, NULL);
    pthread_create(&threads[1], NULL, two, NULL);
    pthread_join(threads[0], NULL);
    int sum = results[0] + results[1];
    pthread_join(threads[1], NULL);
    return sum > 2;
}
