// Robust mutexes that their holders give up by ending.
// Shows: a holder that ends while another thread waits, and a mutex that nobody repairs.
// True:  every call returns.
// expect: none
#include <errno.h>
#include <pthread.h>
#include <semaphore.h>
#include <stdlib.h>

static pthread_mutex_t dying, lost;
static sem_t taken, finish;

static void init(pthread_mutex_t *mutex) {
    pthread_mutexattr_t attributes;
    pthread_mutexattr_init(&attributes);
    pthread_mutexattr_setrobust(&attributes, PTHREAD_MUTEX_ROBUST);
    pthread_mutex_init(mutex, &attributes);
}

static void *takes(void *mutex) {
    pthread_mutex_lock(mutex);
    sem_post(&taken);
    sem_wait(&finish);
    return 0;
}

static void *fails(void *unused) {
    if (pthread_mutex_lock(&lost) != ENOTRECOVERABLE) abort();
    return 0;
}

static void expect(int result, int expected) {
    if (result != expected) abort();
}

int main(void) {
    pthread_t thread, other;
    sem_init(&taken, 0, 0);
    sem_init(&finish, 0, 0);
    init(&dying);
    init(&lost);
    pthread_create(&thread, 0, takes, &dying);
    sem_wait(&taken);
    sem_post(&finish);
    expect(pthread_mutex_lock(&dying), EOWNERDEAD);
    expect(pthread_mutex_consistent(&dying), 0);
    pthread_mutex_unlock(&dying);
    pthread_join(thread, 0);
    pthread_create(&thread, 0, takes, &lost);
    sem_wait(&taken);
    sem_post(&finish);
    pthread_join(thread, 0);
    expect(pthread_mutex_lock(&lost), EOWNERDEAD);
    pthread_mutex_unlock(&lost);
    pthread_create(&thread, 0, fails, 0);
    pthread_create(&other, 0, fails, 0);
    expect(pthread_mutex_lock(&lost), ENOTRECOVERABLE);
    pthread_join(thread, 0);
    pthread_join(other, 0);
    return 0;
}
