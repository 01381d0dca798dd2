// shows: two threads find that nothing has been made
// bugs: race
#include <pthread.h>

static int storage, *made;

static void *use(void *unused) {
    if (!made) made = &storage;
    return unused;
}

int main(void) {
    pthread_t threads[2];
    pthread_create(&threads[0], NULL, use, NULL);
    pthread_create(&threads[1], NULL, use, NULL);
    for (int i = 0; i < 2; i++) pthread_join(threads[i], NULL);
    return 0;
}
