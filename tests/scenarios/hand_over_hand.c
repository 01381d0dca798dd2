// shows: a list is walked with two locks at a time
// bugs: none
#include <pthread.h>

static struct node {
    pthread_mutex_t lock;
    int value;
} nodes[4];

static void *walk(void *unused) {
    pthread_mutex_lock(&nodes[0].lock);
    for (int i = 0; i < 4; i++) {
        nodes[i].value++;
        if (i < 3) pthread_mutex_lock(&nodes[i + 1].lock);
        pthread_mutex_unlock(&nodes[i].lock);
    }
    return unused;
}

int main(void) {
    pthread_t threads[2];
    for (int i = 0; i < 4; i++) pthread_mutex_init(&nodes[i].lock, NULL);
    pthread_create(&threads[0], NULL, walk, NULL);
    pthread_create(&threads[1], NULL, walk, NULL);
    for (int i = 0; i < 2; i++) pthread_join(threads[i], NULL);
    return nodes[3].value == 2 ? 0 : 1;
}
