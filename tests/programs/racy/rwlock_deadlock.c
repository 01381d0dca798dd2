// A cycle through a read/write lock.
// Shows: a deadlock between a reader and a writer.
// True:  the reader's shared hold keeps the writer out, the writer's mutex keeps the reader out.
// expect: deadlock 13 22
#include <pthread.h>

static pthread_rwlock_t rw = PTHREAD_RWLOCK_INITIALIZER;
static pthread_mutex_t m = PTHREAD_MUTEX_INITIALIZER;
static int value;

static void *reader(void *unused) {
    pthread_rwlock_rdlock(&rw);
    pthread_mutex_lock(&m);
    int seen = value;
    pthread_mutex_unlock(&m);
    pthread_rwlock_unlock(&rw);
    return seen < 0 ? &value : NULL;
}

static void *writer(void *unused) {
    pthread_mutex_lock(&m);
    pthread_rwlock_wrlock(&rw);
    value = 1;
    pthread_rwlock_unlock(&rw);
    pthread_mutex_unlock(&m);
    return NULL;
}

int main(void) {
    pthread_t one, two;
    pthread_create(&one, NULL, reader, NULL);
    pthread_create(&two, NULL, writer, NULL);
    pthread_join(one, NULL);
    pthread_join(two, NULL);
    return value == 1 ? 0 : 1;
}
