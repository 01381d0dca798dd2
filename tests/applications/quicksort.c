// Quicksort that sorts the lower parts in threads of their own, down to some depth.
// Seeded race: exchanges are counted by all threads without the lock.
#include <pthread.h>
#include <stdio.h>

enum { LENGTH = 600, DEPTH = 4 };
#ifndef SEEDED
static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
#endif
static int numbers[LENGTH];
static long exchanges;

struct part {
    int low, high, depth;
};

static int split(int low, int high, long *count) {
    int pivot = numbers[(low + high) / 2], i = low - 1, j = high + 1;
    for (;;) {
        do i++;
        while (numbers[i] < pivot);
        do j--;
        while (numbers[j] > pivot);
        if (i >= j) return j;
        int number = numbers[i];
        numbers[i] = numbers[j];
        numbers[j] = number;
        ++*count;
    }
}

static void *sort(void *argument) {
    struct part part = *(struct part *)argument;
    if (part.low >= part.high) return NULL;
    long count = 0;
    int middle = split(part.low, part.high, &count);
#ifdef SEEDED
    exchanges += count;
#else
    pthread_mutex_lock(&lock);
    exchanges += count;
    pthread_mutex_unlock(&lock);
#endif
    struct part lower = {part.low, middle, part.depth - 1}, upper = {middle + 1, part.high, part.depth - 1};
    pthread_t thread;
    int other = part.depth > 0 && pthread_create(&thread, NULL, sort, &lower) == 0;
    if (!other) sort(&lower);
    sort(&upper);
    if (other) pthread_join(thread, NULL);
    return NULL;
}

int main(void) {
    unsigned state = 1;
    for (int i = 0; i < LENGTH; i++) numbers[i] = (state = state * 1103515245 + 12345) >> 16;
    struct part all = {0, LENGTH - 1, DEPTH};
    sort(&all);
    for (int i = 1; i < LENGTH; i++)
        if (numbers[i - 1] > numbers[i]) return 1;
    printf("%ld exchanges\n", exchanges);
    return 0;
}
