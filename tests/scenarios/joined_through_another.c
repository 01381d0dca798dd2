// shows: a thread joins what it has started, main joins the thread
// bugs: none
#include <pthread.h>

static int data;

static void *grandchild(void *unused) {
    data = 1;
    return unused;
}

static void *child(void *unused) {
    pthread_t inner;
    pthread_create(&inner, NULL, grandchild, NULL);
    pthread_join(inner, NULL);
    return unused;
}

int main(void) {
    pthread_t threads[1];
    pthread_create(&threads[0], NULL, child, NULL);
    for (int i = 0; i < 1; i++) pthread_join(threads[i], NULL);
    data++;
    return data == 2 ? 0 : 1;
}
