// A thread spins on a flag that main sets late: executions take as long as their schedule lets it spin.
#include <pthread.h>
#include <stdatomic.h>
#include <stdio.h>

static atomic_int go;
static int shared;

static void *wait(void *unused) {
    long turns = 0;
    while (!atomic_load(&go)) {
        turns++;
    }
    shared++;
    return (void *)turns;
}

int main(void) {
    pthread_t thread;
    pthread_create(&thread, NULL, wait, NULL);
    for (int i = 0; i < 1000; i++) {
        shared++;
    }
    atomic_store(&go, 1);
    pthread_join(thread, NULL);
    printf("%d\n", shared);
    return 0;
}
