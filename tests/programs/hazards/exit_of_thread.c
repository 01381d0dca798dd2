// pthread_exit deep inside a thread.
// Shows: frames and cleanup handlers left without returning; a join that still must be ordered behind everything.
// True:  main reads both values after the join.
// expect: none
#include <pthread.h>

static int value, cleaned;

static void clean(void *argument) {
    *(int *)argument = 1;
}

static void descend(int depth) {
    if (depth < 0)
        return;
    if (depth == 0) {
        value = 5;
        pthread_exit(&value);
    }
    descend(depth - 1);
    value = 0;
}

static void *work(void *unused) {
    pthread_cleanup_push(clean, &cleaned);
    descend(20);
    pthread_cleanup_pop(0);
    return NULL;
}

int main(void) {
    pthread_t thread;
    void *result;
    pthread_create(&thread, NULL, work, NULL);
    pthread_join(thread, &result);
    return result == &value && value == 5 && cleaned == 1 ? 0 : 1;
}
