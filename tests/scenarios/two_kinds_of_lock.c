// shows: one side takes a spin lock, the other one a mutex
// bugs: race
#include <pthread.h>

static int value;
static pthread_spinlock_t spin;
static pthread_mutex_t m = PTHREAD_MUTEX_INITIALIZER;

static void *spins(void *unused) {
    pthread_spin_lock(&spin);
    value++;
    pthread_spin_unlock(&spin);
    return unused;
}

static void *sleeps(void *unused) {
    pthread_mutex_lock(&m);
    value++;
    pthread_mutex_unlock(&m);
    return unused;
}

int main(void) {
    pthread_t threads[2];
    pthread_spin_init(&spin, 0);
    pthread_create(&threads[0], NULL, spins, NULL);
    pthread_create(&threads[1], NULL, sleeps, NULL);
    for (int i = 0; i < 2; i++) pthread_join(threads[i], NULL);
    return 0;
}
