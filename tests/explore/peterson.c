// Atomicity violation: Peterson's algorithm with the two assignments in the wrong order.
#include <assert.h>
#include <pthread.h>
static _Atomic int wants[2], turn, inside;
static void *enter(void *p) {
    int me = p != 0, other = 1 - me;
    turn = other;
    wants[me] = 1;
    while (wants[other] && turn == other) {}
    assert(inside++ == 0);
    inside--;
    wants[me] = 0;
    return p;
}
int main(void) { pthread_t x, y; pthread_create(&x, 0, enter, 0); pthread_create(&y, 0, enter, &turn); pthread_join(x, 0);
    pthread_join(y, 0); return 0; }
