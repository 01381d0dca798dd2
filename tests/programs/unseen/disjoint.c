// The calls touch different memory, so that they order nothing (Figure 4.1 without the common y).
// race: 1 2
#include <pthread.h>
#include <sched.h>
#include <stdlib.h>

void touch(int *place);

#ifdef LIBRARY
void touch(int *place) {
    __atomic_fetch_add(place, 1, __ATOMIC_SEQ_CST);
}
#else
int here, there, data;

static void *first(void *unused) {
    data = 1; // @1
    touch(&here);
    return unused;
}

static void *second(void *unused) {
    touch(&there);
    data = 2; // @2
    return unused;
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
