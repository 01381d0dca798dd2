// A record that a thread looks at, and memory that is asked for once it is given back.
// Shows: the twin of racy/freed_in_between.c: main frees the record when nobody can look any more.
// True:  the join orders the look before the end.
// expect: none
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
    pthread_join(thread, NULL);
    free(record);
    struct record *other = malloc(sizeof *other);
    other->value = 5;
    printf("%ld %ld\n", other->value, seen);
    free(other);
    return 0;
}
