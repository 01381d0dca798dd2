// shows: a thread is joined, the one that it has started is not
// bugs: race
#include <pthread.h>

static int data;
static pthread_t inner;

static void *grandchild(void *unused) {
    data = 1;
    return unused;
}

static void *child(void *unused) {
    pthread_create(&inner, NULL, grandchild, NULL);
    return unused;
}

int main(void) {
    pthread_t thread;
    pthread_create(&thread, NULL, child, NULL);
    pthread_join(thread, NULL);
    data++;
    pthread_join(inner, NULL);
    return 0;
}
