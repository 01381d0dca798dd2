// Threads fill slots that main keeps on its stack, each on a cache line pair of its own.
// Shows: variables aligned to more than the stack is; where main's stack ends within a page is random, and their distance from
//        there must not be.
// True:  no two threads touch the same slot before the joins.
// expect: none
#include <pthread.h>
#include <stdio.h>

struct slot {
    _Alignas(128) int number;
    int square;
};

static void *fill(void *argument) {
    struct slot *slot = argument;
    slot->square = slot->number * slot->number;
    return NULL;
}

int main(void) {
    struct slot slots[3];
    pthread_t threads[3];
    int sum = 0;
    for (int i = 0; i < 3; i++) {
        slots[i].number = i + 1;
        pthread_create(&threads[i], NULL, fill, &slots[i]);
    }
    for (int i = 0; i < 3; i++) {
        pthread_join(threads[i], NULL);
        sum += slots[i].square;
    }
    printf("%d\n", sum);
    return sum != 14;
}
