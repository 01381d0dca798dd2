// A list that grows while a thread adds up its numbers.
// Shows: the twin of racy/moved_while_used.c: the thread asks for the list's address where it uses it.
// True:  the lock is held from the look at the pointer to the last use of what it points to.
// expect: none
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static long *list;
static long sum;

static void *add_up(void *unused) {
    pthread_mutex_lock(&lock);
    const long *first = list;
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
