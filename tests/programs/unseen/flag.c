// An ad hoc flag in the library (Figure 4.1): what was written before it is set is read after it was awaited.
// race: 3 4
// ordered: 1 2
#include <pthread.h>
#include <sched.h>
#include <stdlib.h>

void flag_set(int *flag);
void flag_await(int *flag);

#ifdef LIBRARY
void flag_set(int *flag) {
    __atomic_store_n(flag, 1, __ATOMIC_RELEASE);
}
void flag_await(int *flag) {
    while (!__atomic_load_n(flag, __ATOMIC_ACQUIRE)) sched_yield();
}
#else
int flag, data, other;

static void *first(void *unused) {
    data = 1; // @1
    flag_set(&flag);
    other = 1; // @3
    return unused;
}

static void *second(void *unused) {
    other = 2; // @4
    flag_await(&flag);
    return data == 1 ? unused : &data; // @2
}

int main(void) {
    pthread_t one, other;
    pthread_create(&one, 0, first, 0);
    pthread_create(&other, 0, second, 0);
    pthread_join(one, 0);
    pthread_join(other, 0);
    return 0;
}
#endif
