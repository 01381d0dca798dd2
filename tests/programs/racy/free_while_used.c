// A heap block that one thread frees while another one still reads it.
// Shows: the end of a block is a write of all of it: that it is freed first in one schedule and last in another makes it a race.
// True:  main frees what it has handed to the thread, and joins the thread only then.
// expect: race 17 25 co-enabled
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>

struct item {
    long key;
    long value;
};

static void *look(void *argument) {
    const struct item *item = argument;
    static long seen;
    seen = item->value;
    return &seen;
}

int main(void) {
    struct item *item = calloc(1, sizeof *item);
    pthread_t thread;
    pthread_create(&thread, NULL, look, item);
    free(item);
    pthread_join(thread, NULL);
    puts("looked");
    return 0;
}
