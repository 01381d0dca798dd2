// Whoever uses a block last frees it, and the last user of a pipe closes it.
// Shows: freeing, reallocating and closing that synchronisation orders are no races: by a count under a lock, by an atomic
//        count, by a join.
// True:  every user gives its reference back before the last one frees.
#include <pthread.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

struct shared {
    pthread_mutex_t lock;
    int locked_users;
    atomic_int users;
    long *values;
    int ends[2];
};

static void *use(void *argument) {
    struct shared *shared = argument;
    pthread_mutex_lock(&shared->lock);
    shared->values = realloc(shared->values, 64 * sizeof *shared->values);
    shared->values[shared->locked_users] += 1;
    int is_last = --shared->locked_users == 0;
    pthread_mutex_unlock(&shared->lock);
    if (is_last) {
        free(shared->values);
        pthread_mutex_destroy(&shared->lock);
    }
    if (write(shared->ends[1], "x", 1) != 1)
        return argument;
    if (atomic_fetch_sub(&shared->users, 1) == 1) {
        close(shared->ends[1]);
        close(shared->ends[0]);
        free(shared);
    }
    return NULL;
}

int main(void) {
    struct shared *shared = calloc(1, sizeof *shared);
    pthread_mutex_init(&shared->lock, NULL);
    shared->locked_users = 2;
    atomic_init(&shared->users, 2);
    shared->values = calloc(4, sizeof *shared->values);
    if (pipe(shared->ends) != 0)
        return 1;
    pthread_t one, two;
    pthread_create(&one, NULL, use, shared);
    pthread_create(&two, NULL, use, shared);
    pthread_join(one, NULL);
    pthread_join(two, NULL);
    puts("freed");
    return 0;
}
