// bug: an auditor among ten workers looks between two flags, which they set one after the other
// shows: failure
#include <assert.h>
#include <pthread.h>
#include <stdatomic.h>
enum { WORKERS = 10 };
static atomic_int begun, done;
static pthread_mutex_t both = PTHREAD_MUTEX_INITIALIZER;
static void lock(void) {
#ifdef FIXED
    pthread_mutex_lock(&both);
#endif
}
static void unlock(void) {
#ifdef FIXED
    pthread_mutex_unlock(&both);
#endif
}
static void *work(void *p) {
    lock();
    begun = 1;
    done = 1;
    unlock();
    return p;
}
static void *audit(void *p) {
    lock();
    int first = begun, second = done;
    unlock();
    assert(!first || second);
    return p;
}
int main(void) {
    pthread_t workers[WORKERS], auditor;
    for (int i = 0; i < WORKERS; i++) pthread_create(&workers[i], 0, work, 0);
    pthread_create(&auditor, 0, audit, 0);
    for (int i = 0; i < WORKERS; i++) pthread_join(workers[i], 0);
    return pthread_join(auditor, 0);
}
