// Recursive and error-checking mutexes.
// Shows: a lock taken several times by its owner, and one that refuses.
// True:  the tree is used with the recursive lock held.
// expect: none
#include <errno.h>
#include <pthread.h>
#include <stdio.h>

static pthread_mutex_t recursive, checking;
static int order[24], entries;

static void descend(int me, int depth) {
    pthread_mutex_lock(&recursive);
    order[entries++] = me;
    if (depth > 0)
        descend(me, depth - 1);
    pthread_mutex_unlock(&recursive);
}

static void *work(void *argument) {
    int me = *(int *)argument;
    descend(me, 3);
    descend(me, 3);
    pthread_mutex_lock(&checking);
    int again = pthread_mutex_lock(&checking);
    pthread_mutex_unlock(&checking);
    int twice = pthread_mutex_unlock(&checking);
    return again == EDEADLK && twice == EPERM ? NULL : argument;
}

int main(void) {
    pthread_mutexattr_t attributes;
    pthread_mutexattr_init(&attributes);
    pthread_mutexattr_settype(&attributes, PTHREAD_MUTEX_RECURSIVE);
    pthread_mutex_init(&recursive, &attributes);
    pthread_mutexattr_settype(&attributes, PTHREAD_MUTEX_ERRORCHECK);
    pthread_mutex_init(&checking, &attributes);
    pthread_t threads[3];
    int numbers[3] = {0, 1, 2}, failed = 0;
    for (int i = 0; i < 3; i++)
        pthread_create(&threads[i], NULL, work, &numbers[i]);
    for (int i = 0; i < 3; i++) {
        void *result;
        pthread_join(threads[i], &result);
        failed += result != NULL;
    }
    for (int i = 0; i < entries; i++)
        printf("%d", order[i]);
    printf("\n");
    for (int i = 0; i < 24; i += 4)
        for (int k = 1; k < 4; k++)
            failed += order[i + k] != order[i];
    return failed == 0 && entries == 24 ? 0 : 1;
}
