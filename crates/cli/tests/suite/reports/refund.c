// A lock that is released once too often, and a read outside of it.
#include <pthread.h>

static pthread_mutex_t ledger = PTHREAD_MUTEX_INITIALIZER;
static long balance = 100;

static void pay(long amount) {
    pthread_mutex_lock(&ledger);
    balance -= amount;
    pthread_mutex_unlock(&ledger);
    if (balance < 0)
        pthread_mutex_unlock(&ledger);
}

static void *customer(void *amount) {
    pay((long)amount);
    return NULL;
}

int main(void) {
    pthread_t one, other;
    pthread_create(&one, NULL, customer, (void *)60L);
    pthread_create(&other, NULL, customer, (void *)70L);
    pthread_join(one, NULL);
    pthread_join(other, NULL);
    return 0;
}
