// A record that is given back although a thread has still to look at it, and memory that is asked for at once.
// Shows: the late look finds what would be there next, unless the address is not given out again: no lock is missing, there is no
//        data race, and nothing crashes.
// True:  main frees the record under the lock, which the thread may take only then.
// expect: use-after-free
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>

struct record { long key, links, value; };

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static struct record *record;
static long seen;

static void *look(void *unused) {
    pthread_mutex_lock(&lock);
    seen = record->value;
    pthread_mutex_unlock(&lock);
    return unused;
}

int main(void) {
    pthread_t thread;
    record = calloc(1, sizeof *record);
    pthread_create(&thread, NULL, look, NULL);
    pthread_mutex_lock(&lock);
    free(record);
    struct record *other = malloc(sizeof *other);
    other->value = 5;
    pthread_mutex_unlock(&lock);
    pthread_join(thread, NULL);
    printf("%ld %ld\n", other->value, seen);
    free(other);
    return 0;
}
