// memset against memcpy.
// Shows: a race made by library calls on ranges, not by single accesses.
// True:  only the last 1 KiB of the buffer is touched by both.
// expect: race 14 19 co-enabled
#include <pthread.h>
#include <stdio.h>
#include <string.h>

static char buffer[8192];
static char backup[4096];
static volatile size_t filled = 5120, copied = 4096; // not constants, or the compiler may expand the calls in place

static void *fill(void *unused) {
    memset(buffer + 3072, 'x', filled);
    return NULL;
}

static void *copy(void *unused) {
    memcpy(backup, buffer, copied);
    return NULL;
}

int main(void) {
    pthread_t one, two;
    pthread_create(&one, NULL, fill, NULL);
    pthread_create(&two, NULL, copy, NULL);
    pthread_join(one, NULL);
    pthread_join(two, NULL);
    printf("%d %d\n", backup[0], buffer[8191]);
    return 0;
}
