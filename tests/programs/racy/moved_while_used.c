// A list that grows while a thread has its old address.
// Shows: the list has room behind it, so that libc's realloc lets it grow in its place, and nothing goes wrong by chance.
// True:  main moves the list between the two critical sections of the thread in some schedules.
// expect: use-after-free
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static long *list;
static long sum;

static void *add_up(void *unused) {
    pthread_mutex_lock(&lock);
    const long *first = list;
    pthread_mutex_unlock(&lock);
    pthread_mutex_lock(&lock);
    sum = first[0] + first[3];
    pthread_mutex_unlock(&lock);
    return unused;
}

int main(void) {
    pthread_t thread;
    pthread_create(&thread, NULL, add_up, (list = calloc(4, sizeof *list)));
    pthread_mutex_lock(&lock);
    list = realloc(list, 400 * sizeof *list);
    pthread_mutex_unlock(&lock);
    pthread_join(thread, NULL);
    printf("%ld\n", sum);
    free(list);
    return 0;
}
