// shows: a cell is written in the phase in which the neighbour reads it
// bugs: race
#include <pthread.h>

static int cells[2];
static pthread_barrier_t barrier;

static void *left(void *unused) {
    cells[0] = 1;
    pthread_barrier_wait(&barrier);
    cells[0] = cells[1];
    return unused;
}

static void *right(void *unused) {
    cells[1] = 1;
    pthread_barrier_wait(&barrier);
    cells[1] = cells[0];
    return unused;
}

int main(void) {
    pthread_t threads[2];
    pthread_barrier_init(&barrier, NULL, 2);
    pthread_create(&threads[0], NULL, left, NULL);
    pthread_create(&threads[1], NULL, right, NULL);
    for (int i = 0; i < 2; i++) pthread_join(threads[i], NULL);
    return 0;
}
