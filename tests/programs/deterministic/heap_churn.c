// Blocks allocated by one thread and freed by another.
// Shows: heap objects named by thread, allocation site and ordinal; address reuse across threads.
// True:  a block changes hands in a slot that is read and written with the lock held.
// expect: none
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { SLOTS = 4, STEPS = 20 };
static char *slots[SLOTS];
static long total;
static pthread_mutex_t m = PTHREAD_MUTEX_INITIALIZER;

static void *work(void *argument) {
    int me = *(int *)argument;
    for (int i = 0; i < STEPS; i++) {
        size_t size = 16 + (size_t)(i * 37 + me * 11) % 200;
        char *mine = malloc(size);
        memset(mine, me + 1, size);
        mine = realloc(mine, size + 32);
        pthread_mutex_lock(&m);
        char *other = slots[i % SLOTS];
        slots[i % SLOTS] = mine;
        pthread_mutex_unlock(&m);
        if (other != NULL) {
            int value = other[0];
            free(other);
            pthread_mutex_lock(&m);
            total += value;
            pthread_mutex_unlock(&m);
        }
    }
    return NULL;
}

int main(void) {
    pthread_t threads[3];
    int numbers[3] = {0, 1, 2};
    for (int i = 0; i < 3; i++)
        pthread_create(&threads[i], NULL, work, &numbers[i]);
    for (int i = 0; i < 3; i++)
        pthread_join(threads[i], NULL);
    for (int i = 0; i < SLOTS; i++) {
        printf("%d ", slots[i][0]);
        total += slots[i][0];
        free(slots[i]);
    }
    printf("left\n");
    return total == STEPS * (1 + 2 + 3) ? 0 : 1;
}
