// shows: three threads pass two locks; any order of the sections is possible, one hides the race
// bugs: race
#include <pthread.h>

static int data, one, two;
static pthread_mutex_t a = PTHREAD_MUTEX_INITIALIZER;
static pthread_mutex_t b = PTHREAD_MUTEX_INITIALIZER;

static void *first(void *unused) {
    data = 1;
    pthread_mutex_lock(&a);
    one++;
    pthread_mutex_unlock(&a);
    return unused;
}

static void *middle(void *unused) {
    pthread_mutex_lock(&a);
    one++;
    pthread_mutex_unlock(&a);
    pthread_mutex_lock(&b);
    two++;
    pthread_mutex_unlock(&b);
    return unused;
}

static void *last(void *unused) {
    pthread_mutex_lock(&b);
    two++;
    pthread_mutex_unlock(&b);
    data = 2;
    return unused;
}

int main(void) {
    pthread_t threads[3];
    pthread_create(&threads[0], NULL, first, NULL);
    pthread_create(&threads[1], NULL, middle, NULL);
    pthread_create(&threads[2], NULL, last, NULL);
    for (int i = 0; i < 3; i++) pthread_join(threads[i], NULL);
    return data == 0;
}
