// bug: free seats are counted in one critical section and taken in the next: one seat is sold twice
// shows: atomicity-violation
#include <pthread.h>

struct event {
    pthread_rwlock_t lock;
    int seats, sold;
};
static struct event concert = {PTHREAD_RWLOCK_INITIALIZER, 1, 0};

static int buy(struct event *event) {
#ifndef FIXED
    pthread_rwlock_rdlock(&event->lock);
    int left = event->seats - event->sold;
    pthread_rwlock_unlock(&event->lock);
    if (left == 0) return 0;
#endif
    pthread_rwlock_wrlock(&event->lock);
#ifdef FIXED
    int left = event->seats - event->sold;
    if (left == 0) {
        pthread_rwlock_unlock(&event->lock);
        return 0;
    }
#endif
    event->sold++;
    pthread_rwlock_unlock(&event->lock);
    return 1;
}

static void *visitor(void *unused) {
    buy(&concert);
    return unused;
}

int main(void) {
    pthread_t one, other;
    pthread_create(&one, NULL, visitor, NULL);
    pthread_create(&other, NULL, visitor, NULL);
    pthread_join(one, NULL);
    pthread_join(other, NULL);
    return concert.sold > concert.seats;
}
