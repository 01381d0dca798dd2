// 65 mutexes held at once.
// Shows: that no fixed limit on held locks exists.
// True:  both threads take all locks in the same order.
// expect: none
#include <pthread.h>

enum { LOCKS = 65 };
static pthread_mutex_t locks[LOCKS];
static int count;

static void *take_all(void *unused) {
    for (int i = 0; i < LOCKS; i++)
        pthread_mutex_lock(&locks[i]);
    count++;
    for (int i = LOCKS - 1; i >= 0; i--)
        pthread_mutex_unlock(&locks[i]);
    return NULL;
}

int main(void) {
    pthread_t one, two;
    for (int i = 0; i < LOCKS; i++)
        pthread_mutex_init(&locks[i], NULL);
    pthread_create(&one, NULL, take_all, NULL);
    pthread_create(&two, NULL, take_all, NULL);
    pthread_join(one, NULL);
    pthread_join(two, NULL);
    return count == 2 ? 0 : 1;
}
