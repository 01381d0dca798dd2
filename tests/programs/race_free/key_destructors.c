// pthread_exit and destructors of thread-specific data.
// Shows: code that runs after a thread's start routine and before its join.
// True:  the join orders main behind the destructor.
// expect: none
#include <pthread.h>
#include <stdlib.h>

static pthread_key_t key;
static int totals[3];

struct record {
    int *total;
    int value;
};

static void add(void *argument) {
    struct record *record = argument;
    *record->total += record->value;
    free(record);
}

static void leave(void) {
    pthread_exit(NULL);
}

static void *work(void *argument) {
    struct record *record = malloc(sizeof *record);
    record->total = argument;
    record->value = 7;
    pthread_setspecific(key, record);
    leave();
    return NULL;
}

int main(void) {
    pthread_t threads[3];
    pthread_key_create(&key, add);
    for (int i = 0; i < 3; i++)
        pthread_create(&threads[i], NULL, work, &totals[i]);
    for (int i = 0; i < 3; i++)
        pthread_join(threads[i], NULL);
    pthread_key_delete(key);
    return totals[0] + totals[1] + totals[2] == 21 ? 0 : 1;
}
