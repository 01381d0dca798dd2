// bug: the balance is read in one critical section and written in the next; a deposit in between is lost
// shows: atomicity-violation
#include <pthread.h>
#include <stdio.h>
static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static int balance = 100;
static void *deposit(void *amount) {
    pthread_mutex_lock(&lock);
    int seen = balance;
#ifndef FIXED
    pthread_mutex_unlock(&lock);
    pthread_mutex_lock(&lock);
#endif
    balance = seen + (int)(long)amount;
    pthread_mutex_unlock(&lock);
    return NULL;
}
int main(void) {
    pthread_t one, other;
    pthread_create(&one, NULL, deposit, (void *)10);
    pthread_create(&other, NULL, deposit, (void *)20);
    pthread_join(one, NULL);
    pthread_join(other, NULL);
    printf("balance %d\n", balance);
    return 0;
}
