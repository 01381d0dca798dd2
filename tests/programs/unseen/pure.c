// The library has no state and gets no memory.
// race: 1 2
#include <pthread.h>
#include <sched.h>
#include <stdlib.h>

int sum(int a, int b);

#ifdef LIBRARY
int sum(int a, int b) {
    return a + b;
}
#else
int data;

static void *first(void *unused) {
    data = sum(1, 2); // @1
    return unused;
}

static void *second(void *unused) {
    int three = sum(2, 1);
    data = three; // @2
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
