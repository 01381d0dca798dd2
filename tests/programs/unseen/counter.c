// A counter of the library orders nothing that anybody relies on.
// race: 1 2
#include <pthread.h>
#include <sched.h>
#include <stdlib.h>

struct counter;
struct counter *counter_new(void);
void counter_add(struct counter *counter);

#ifdef LIBRARY
struct counter {
    long value;
};
struct counter *counter_new(void) {
    return calloc(1, sizeof(struct counter));
}
void counter_add(struct counter *counter) {
    __atomic_fetch_add(&counter->value, 1, __ATOMIC_RELAXED);
}
#else
static struct counter *counter;
int data;

static void *first(void *unused) {
    data = 1; // @1
    counter_add(counter);
    return unused;
}

static void *second(void *unused) {
    counter_add(counter);
    data = 2; // @2
    return unused;
}

int main(void) {
    pthread_t one, other;
    counter = counter_new();
    pthread_create(&one, 0, first, 0);
    pthread_create(&other, 0, second, 0);
    pthread_join(one, 0);
    pthread_join(other, 0);
    return 0;
}
#endif
