// A thread waits while another one changes the user of the process.
// Shows: libc lets each thread change its user, by a signal, and waits for all of them, the runtime's own included.
// True:  the change comes to its end; everything is under the mutex.
// expect: none
#define _GNU_SOURCE
#include <pthread.h>
#include <stdio.h>
#include <unistd.h>

static pthread_mutex_t mutex = PTHREAD_MUTEX_INITIALIZER;
static pthread_cond_t moved = PTHREAD_COND_INITIALIZER;
static int has_begun, is_over;

static void *work(void *argument) {
    pthread_mutex_lock(&mutex);
    has_begun = 1;
    pthread_cond_signal(&moved);
    while (!is_over)
        pthread_cond_wait(&moved, &mutex);
    pthread_mutex_unlock(&mutex);
    return argument;
}

int main(void) {
    pthread_t thread;
    pthread_mutex_lock(&mutex);
    if (pthread_create(&thread, NULL, work, NULL))
        return 2;
    while (!has_begun)
        pthread_cond_wait(&moved, &mutex);
    pthread_mutex_unlock(&mutex);
    if (setresuid(getuid(), geteuid(), geteuid()) || setresgid(getgid(), getegid(), getegid()))
        return 3;
    pthread_mutex_lock(&mutex);
    is_over = 1;
    pthread_cond_signal(&moved);
    pthread_mutex_unlock(&mutex);
    if (pthread_join(thread, NULL))
        return 4;
    puts("changed");
    return 0;
}
