// Order violation: a thread uses what its creator sets after creating it.
#include <assert.h>
#include <pthread.h>
static int *data;
static void *use(void *p) { assert(data != 0); return p; }
int main(void) { static int value = 1; pthread_t x; pthread_create(&x, 0, use, 0); data = &value; pthread_join(x, 0); return 0; }
