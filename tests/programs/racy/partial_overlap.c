// Accesses of different sizes that overlap.
// Shows: one byte in the middle of eight.
// True:  the byte lies inside the word; the first byte, which the third thread writes into another word, does not.
// expect: race 15 20 co-enabled
#include <pthread.h>
#include <stdint.h>
#include <stdio.h>

static union {
    uint64_t words[2];
    uint8_t bytes[16];
} shared;

static void *write_word(void *unused) {
    shared.words[0] = 0x0101010101010101;
    return NULL;
}

static void *write_byte(void *unused) {
    shared.bytes[5] = 7;
    return NULL;
}

static void *write_neighbour(void *unused) {
    shared.bytes[8] = 9;
    return NULL;
}

int main(void) {
    pthread_t threads[3];
    pthread_create(&threads[0], NULL, write_word, NULL);
    pthread_create(&threads[1], NULL, write_byte, NULL);
    pthread_create(&threads[2], NULL, write_neighbour, NULL);
    for (int i = 0; i < 3; i++)
        pthread_join(threads[i], NULL);
    printf("%d %d\n", shared.bytes[5], shared.bytes[8]);
    return shared.bytes[8] == 9 ? 0 : 1;
}
