// Neighbouring bytes and zero-width bit-fields.
// Shows: different memory locations that share a word and a cache line.
// True:  no byte is used by two threads while both live.
// expect: none
#include <pthread.h>

static struct {
    char first;
    char second;
    unsigned low : 4;
    unsigned : 0;
    unsigned high : 4;
} shared;

static void *one(void *unused) {
    shared.first = 1;
    shared.low = 3;
    return NULL;
}

static void *two(void *unused) {
    shared.second = 2;
    shared.high = 4;
    return NULL;
}

int main(void) {
    pthread_t a, b;
    pthread_create(&a, NULL, one, NULL);
    pthread_create(&b, NULL, two, NULL);
    pthread_join(a, NULL);
    pthread_join(b, NULL);
    return shared.first + shared.second + shared.low + shared.high == 10 ? 0 : 1;
}
