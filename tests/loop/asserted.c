// bug: an assertion holds unless the later request is answered first
// shows: failure
#include <assert.h>
#include <pthread.h>
#include <stddef.h>

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static int last;

static void *answer(void *number) {
    pthread_mutex_lock(&lock);
    int mine = *(int *)number;
#ifdef FIXED
    if (mine > last) last = mine;
#else
    last = mine;
#endif
    pthread_mutex_unlock(&lock);
    return NULL;
}

int main(void) {
    static int numbers[] = {1, 2};
    pthread_t threads[2];
    for (int i = 0; i < 2; i++) pthread_create(&threads[i], NULL, answer, &numbers[i]);
    for (int i = 0; i < 2; i++) pthread_join(threads[i], NULL);
    assert(last == 2);
    return 0;
}
