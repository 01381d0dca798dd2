// A value is handed over under a lock, and counted by an instruction that no instrumentation sees.
#include <pthread.h>

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static pthread_cond_t is_full = PTHREAD_COND_INITIALIZER;
static int full, input, handed_over;

static void count(void) {
    __asm__ volatile("lock incl %0" : "+m"(handed_over));
}

static void *give(void *p) {
    input = 7;
    count();
    pthread_mutex_lock(&lock);
    full = 1;
    pthread_cond_signal(&is_full);
    pthread_mutex_unlock(&lock);
    return p;
}

static void *take(void *p) {
    pthread_mutex_lock(&lock);
    while (!full)
        pthread_cond_wait(&is_full, &lock);
    pthread_mutex_unlock(&lock);
    *(int *)p = input;
    return 0;
}

int main(void) {
    pthread_t giver, taker;
    int result = 0;
    pthread_create(&giver, 0, give, 0);
    pthread_create(&taker, 0, take, &result);
    pthread_join(giver, 0);
    pthread_join(taker, 0);
    return result != 7;
}
