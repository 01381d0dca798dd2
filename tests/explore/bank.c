// Deadlock: two transfers lock two accounts in opposite orders.
#include <pthread.h>
static pthread_mutex_t a = PTHREAD_MUTEX_INITIALIZER, b = PTHREAD_MUTEX_INITIALIZER;
static int in_a = 10, in_b = 10;
static void *there(void *p) { pthread_mutex_lock(&a); pthread_mutex_lock(&b); in_a--; in_b++; pthread_mutex_unlock(&b);
    pthread_mutex_unlock(&a); return p; }
static void *back(void *p) { pthread_mutex_lock(&b); pthread_mutex_lock(&a); in_b--; in_a++; pthread_mutex_unlock(&a);
    pthread_mutex_unlock(&b); return p; }
int main(void) {
    pthread_t x, y;
    pthread_create(&x, 0, there, 0);
    pthread_create(&y, 0, back, 0);
    pthread_join(x, 0);
    pthread_join(y, 0);
    return 0;
}
