// Lost wake-up: a semaphore is posted only if somebody was seen waiting.
#include <pthread.h>
#include <semaphore.h>
static sem_t s;
static _Atomic int waiting, available;
static void *consume(void *p) { if (!available) { waiting = 1; sem_wait(&s); } return p; }
static void *produce(void *p) { available = 1; if (waiting) sem_post(&s); return p; }
int main(void) { pthread_t x, y; sem_init(&s, 0, 0); pthread_create(&x, 0, consume, 0); pthread_create(&y, 0, produce, 0);
    pthread_join(x, 0); pthread_join(y, 0); return 0; }
