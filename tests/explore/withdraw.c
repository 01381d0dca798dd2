// Atomicity violation: check and withdrawal hold the lock each for itself.
#include <assert.h>
#include <pthread.h>
static pthread_mutex_t m = PTHREAD_MUTEX_INITIALIZER;
static int balance = 100;
static int look(void) { pthread_mutex_lock(&m); int seen = balance; pthread_mutex_unlock(&m); return seen; }
static void *withdraw(void *p) { if (look() >= 80) { pthread_mutex_lock(&m); balance -= 80; pthread_mutex_unlock(&m); }
    return p; }
int main(void) { pthread_t x, y; pthread_create(&x, 0, withdraw, 0); pthread_create(&y, 0, withdraw, 0); pthread_join(x, 0);
    pthread_join(y, 0); assert(balance >= 0); return 0; }
