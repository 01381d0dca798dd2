// Every execution takes a while, and there are races at many places: the budget ends in the middle.
#include <pthread.h>

#define EACH(X) X(0) X(1) X(2) X(3) X(4) X(5) X(6) X(7) X(8) X(9) X(10) X(11) X(12) X(13) X(14) X(15)
#define VARIABLE(n) static int x##n;
#define COUNT(n) x##n++;
EACH(VARIABLE)

static void take_long(void) {
    for (long i = 0; i < 600000000; i++) {
        __asm__ volatile("");
    }
}

static void *work(void *unused) {
    EACH(COUNT)
    return NULL;
}

int main(void) {
    pthread_t thread;
    take_long();
    pthread_create(&thread, NULL, work, NULL);
    EACH(COUNT)
    pthread_join(thread, NULL);
    return 0;
}
