// The program itself waits for what the library writes (Caveat 3).
// ordered: 1 2
#include <pthread.h>
#include <sched.h>
#include <stdlib.h>

void tell(int *place);

#ifdef LIBRARY
void tell(int *place) {
    __atomic_store_n(place, 1, __ATOMIC_RELEASE);
}
#else
int place, data;

static void *first(void *unused) {
    data = 1; // @1
    tell(&place);
    return unused;
}

static void *second(void *unused) {
    while (!__atomic_load_n(&place, __ATOMIC_ACQUIRE)) sched_yield();
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
