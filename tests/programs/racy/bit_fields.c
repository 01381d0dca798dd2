// Two bit-fields in one byte.
// Shows: fields with different names that are one memory location (C11 3.14).
// True:  storing to either field reads and writes the byte of both.
// expect: race 14 19 co-enabled
#include <pthread.h>
#include <stdio.h>

static struct {
    unsigned char low : 4;
    unsigned char high : 4;
} flags;

static void *set_low(void *unused) {
    flags.low = 5;
    return NULL;
}

static void *set_high(void *unused) {
    flags.high = 9;
    return NULL;
}

int main(void) {
    pthread_t one, two;
    pthread_create(&one, NULL, set_low, NULL);
    pthread_create(&two, NULL, set_high, NULL);
    pthread_join(one, NULL);
    pthread_join(two, NULL);
    printf("%d %d\n", flags.low, flags.high);
    return 0;
}
