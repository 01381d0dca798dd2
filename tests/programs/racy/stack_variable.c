// A loop variable passed to threads by address.
// Shows: a race on a stack variable of the creating thread.
// True:  main goes on counting while the threads read their number.
// expect: race 9 17 co-enabled
#include <pthread.h>
#include <stdio.h>

static void *work(void *argument) {
    int number = *(int *)argument;
    printf("worker %d\n", number);
    return NULL;
}

int main(void) {
    pthread_t threads[3];
    int i;
    for (i = 0; i < 3; i++)
        pthread_create(&threads[i], NULL, work, &i);
    for (int k = 0; k < 3; k++)
        pthread_join(threads[k], NULL);
    return 0;
}
