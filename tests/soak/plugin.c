// What `chaos.c` loads and unloads while its threads run.
#include <pthread.h>

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static long total;

__attribute__((constructor)) static void begin(void) {
    total = 1;
}

long add(long number) {
    pthread_mutex_lock(&lock);
    total += number;
    long result = total;
    pthread_mutex_unlock(&lock);
    return result;
}
