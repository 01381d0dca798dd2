// Deadlock: the order of two locks differs only when a flag was seen set.
#include <pthread.h>
static pthread_mutex_t a = PTHREAD_MUTEX_INITIALIZER, b = PTHREAD_MUTEX_INITIALIZER, f = PTHREAD_MUTEX_INITIALIZER;
static int flag;
static void *first(void *p) {
    pthread_mutex_lock(&f); flag = 1; pthread_mutex_unlock(&f);
    pthread_mutex_lock(&a); pthread_mutex_lock(&b); pthread_mutex_unlock(&b); pthread_mutex_unlock(&a);
    pthread_mutex_lock(&f); flag = 0; pthread_mutex_unlock(&f);
    return p;
}
static void *second(void *p) {
    pthread_mutex_lock(&f); int seen = flag; pthread_mutex_unlock(&f);
    pthread_mutex_t *one = seen ? &b : &a, *other = seen ? &a : &b;
    pthread_mutex_lock(one); pthread_mutex_lock(other); pthread_mutex_unlock(other); pthread_mutex_unlock(one);
    return p;
}
int main(void) { pthread_t x, y; pthread_create(&x, 0, first, 0); pthread_create(&y, 0, second, 0); pthread_join(x, 0);
    pthread_join(y, 0); return 0; }
