// Order violation behind a sleep that is long enough nearly always.
#include <assert.h>
#include <pthread.h>
#include <unistd.h>
static _Atomic int prepared;
static void *prepare(void *p) { prepared = 1; return p; }
int main(void) { pthread_t x; pthread_create(&x, 0, prepare, 0); usleep(2000); assert(prepared); pthread_join(x, 0); return 0; }
