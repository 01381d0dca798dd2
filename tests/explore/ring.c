// Order violation: the index of a ring is raised before the entry is written.
#include <assert.h>
#include <pthread.h>
static _Atomic int written, ring[4];
static void *produce(void *p) { for (int i = 0; i < 3; i++) { int at = written++; ring[at] = i + 1; } return p; }
static void *consume(void *p) { int count = written; for (int i = 0; i < count; i++) assert(ring[i] != 0); return p; }
int main(void) { pthread_t x, y; pthread_create(&x, 0, produce, 0); pthread_create(&y, 0, consume, 0); pthread_join(x, 0);
    pthread_join(y, 0); return 0; }
