// shows: neighbours read in one phase and write in the next
// bugs: none
#include <pthread.h>

static int cells[2];
static pthread_barrier_t barrier;

static void *left(void *unused) {
    for (int i = 0; i < 3; i++) {
        int other = cells[1];
        pthread_barrier_wait(&barrier);
        cells[0] += other + 1;
        pthread_barrier_wait(&barrier);
    }
    return unused;
}

static void *right(void *unused) {
    for (int i = 0; i < 3; i++) {
        int other = cells[0];
        pthread_barrier_wait(&barrier);
        cells[1] += other + 1;
        pthread_barrier_wait(&barrier);
    }
    return unused;
}

int main(void) {
    pthread_t threads[2];
    pthread_barrier_init(&barrier, NULL, 2);
    pthread_create(&threads[0], NULL, left, NULL);
    pthread_create(&threads[1], NULL, right, NULL);
    for (int i = 0; i < 2; i++) pthread_join(threads[i], NULL);
    return cells[0] == 7 && cells[1] == 7 ? 0 : 1;
}
