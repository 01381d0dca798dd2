// Atomicity violation: increments without a lock.
#include <assert.h>
#include <pthread.h>
static int counter;
static void *add(void *p) { for (int i = 0; i < 3; i++) counter++; return p; }
int main(void) { pthread_t x, y; pthread_create(&x, 0, add, 0); pthread_create(&y, 0, add, 0); pthread_join(x, 0);
    pthread_join(y, 0); assert(counter == 6); return 0; }
