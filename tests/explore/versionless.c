// ABA: a compare-exchange sees the value that was there before, and not that it changed twice.
#include <assert.h>
#include <pthread.h>
static _Atomic int state, changes;
static void *look(void *p) { int seen = state, before = changes;
    if (__atomic_compare_exchange_n((int *)&state, &seen, 5, 0, 5, 5)) assert(changes == before); return p; }
static void *flip(void *p) { state = 1; changes++; state = 0; return p; }
int main(void) { pthread_t x, y; pthread_create(&x, 0, look, 0); pthread_create(&y, 0, flip, 0); pthread_join(x, 0);
    pthread_join(y, 0); return 0; }
