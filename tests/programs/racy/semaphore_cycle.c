// Two threads that each wait for the other's post.
// Shows: threads that wait for ever on semaphores, which have no holder.
// True:  both wait before they post, under every schedule.
// expect: stuck
#include <pthread.h>
#include <semaphore.h>

static sem_t tea, milk;

static void *make_tea(void *unused) {
    sem_wait(&milk);
    sem_post(&tea);
    return NULL;
}

static void *fetch_milk(void *unused) {
    sem_wait(&tea);
    sem_post(&milk);
    return NULL;
}

int main(void) {
    pthread_t one, two;
    sem_init(&tea, 0, 0);
    sem_init(&milk, 0, 0);
    pthread_create(&one, NULL, make_tea, NULL);
    pthread_create(&two, NULL, fetch_milk, NULL);
    pthread_join(one, NULL);
    pthread_join(two, NULL);
    return 1;
}
