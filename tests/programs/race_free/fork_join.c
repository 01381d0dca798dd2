// Recursive fork and join.
// Shows: threads that create threads; the only synchronisation is creation and join.
// True:  a range is written by main before, and summed by exactly one leaf.
// expect: none
#include <pthread.h>

struct range {
    const int *first;
    int length;
    long sum;
};

static void *add_up(void *argument) {
    struct range *range = argument;
    if (range->length <= 16) {
        long sum = 0;
        for (int i = 0; i < range->length; i++)
            sum += range->first[i];
        range->sum = sum;
        return NULL;
    }
    int half = range->length / 2;
    struct range left = {range->first, half, 0};
    struct range right = {range->first + half, range->length - half, 0};
    pthread_t thread;
    pthread_create(&thread, NULL, add_up, &left);
    add_up(&right);
    pthread_join(thread, NULL);
    range->sum = left.sum + right.sum;
    return NULL;
}

int main(void) {
    static int numbers[100];
    for (int i = 0; i < 100; i++)
        numbers[i] = i + 1;
    struct range all = {numbers, 100, 0};
    add_up(&all);
    return all.sum == 5050 ? 0 : 1;
}
