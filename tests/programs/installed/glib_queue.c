// A message goes through GLib's asynchronous queue.
// package: glib-2.0
// race: 3 4
// ordered: 1 2
#include <glib.h>
#include <pthread.h>
#include <stdlib.h>

static GAsyncQueue *queue;
int count;

static void *first(void *unused) {
    int *message = malloc(sizeof *message);
    *message = 7; // @1
    g_async_queue_push(queue, message);
    count = 1; // @3
    return unused;
}

static void *second(void *unused) {
    count = 2; // @4
    int *message = g_async_queue_pop(queue);
    return *message == 7 ? unused : message; // @2
}

int main(void) {
    pthread_t one, other;
    queue = g_async_queue_new();
    pthread_create(&one, 0, first, 0);
    pthread_create(&other, 0, second, 0);
    pthread_join(one, 0);
    pthread_join(other, 0);
    return 0;
}
