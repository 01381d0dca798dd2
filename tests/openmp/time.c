// Work takes no time that others wait for: prints after which constructs half of the minute was over that one waits at most.
#include <pthread.h>
#include <stdio.h>
#include <time.h>

static pthread_mutex_t mutex = PTHREAD_MUTEX_INITIALIZER;
static pthread_cond_t condition = PTHREAD_COND_INITIALIZER;
static int done, count;

static void *waits(void *argument) {
    struct timespec until;
    clock_gettime(CLOCK_REALTIME, &until);
    until.tv_sec += 60;
    pthread_mutex_lock(&mutex);
    while (!done && pthread_cond_timedwait(&condition, &mutex, &until) == 0) {}
    pthread_mutex_unlock(&mutex);
    return argument;
}

static int passed(struct timespec since) {
    struct timespec now;
    clock_gettime(CLOCK_MONOTONIC, &now);
    return now.tv_sec - since.tv_sec >= 30;
}

int main(void) {
    pthread_t thread;
    struct timespec start;
    int late[3];
    pthread_create(&thread, NULL, waits, NULL);
    clock_gettime(CLOCK_MONOTONIC, &start);
#pragma omp parallel for num_threads(2) schedule(dynamic, 1) reduction(+ : count)
    for (int i = 0; i < 100; i++) count += i;
    late[0] = passed(start);
#pragma omp parallel for num_threads(2) schedule(guided) reduction(+ : count)
    for (int i = 0; i < 100; i++) count += i;
    late[1] = passed(start);
#pragma omp parallel num_threads(2)
#pragma omp single
    for (int i = 0; i < 50; i++) {
#pragma omp task
#pragma omp atomic
        count += i;
    }
    late[2] = passed(start);
    pthread_mutex_lock(&mutex);
    done = 1;
    pthread_cond_signal(&condition);
    pthread_mutex_unlock(&mutex);
    pthread_join(thread, NULL);
    printf("%d %d %d %d\n", count, late[0], late[1], late[2]);
    return 0;
}
