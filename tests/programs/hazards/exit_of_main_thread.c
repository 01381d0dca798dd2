// pthread_exit in the initial thread.
// Shows: a process that outlives its main.
// True:  the last thread's end ends the process with status 0; the worker joins the initial thread first.
// expect: none
#include <pthread.h>
#include <stdio.h>

static pthread_t initial;
static int message;

static void *work(void *unused) {
    if (pthread_join(initial, NULL) != 0)
        return NULL;
    printf("%d\n", message);
    return NULL;
}

int main(void) {
    pthread_t thread;
    initial = pthread_self();
    pthread_create(&thread, NULL, work, NULL);
    message = 17;
    pthread_exit(NULL);
}
