#include <pthread.h>
#include <stdio.h>
static pthread_mutex_t m = PTHREAD_MUTEX_INITIALIZER;
float x = 3, y = 4;
static void *scale(void *unused) {
    (void)unused;
    pthread_mutex_lock(&m);
    float a = x, b = y;
    pthread_mutex_unlock(&m);
    float max = a > b ? a : b;
    pthread_mutex_lock(&m);
    x = x / max;
    y = y / max;
    pthread_mutex_unlock(&m);
    return NULL;
}
int main(void) {
    pthread_t one, two;
    pthread_create(&one, NULL, scale, NULL);
    pthread_create(&two, NULL, scale, NULL);
    pthread_join(one, NULL);
    pthread_join(two, NULL);
    printf("%f %f\n", x, y);
    return 0;
}
