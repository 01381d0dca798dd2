// shows: accounts are locked in the order of their numbers
// bugs: none
#include <pthread.h>

static int balances[2] = {10, 10};
static pthread_mutex_t accounts[2] = {PTHREAD_MUTEX_INITIALIZER, PTHREAD_MUTEX_INITIALIZER};

static void transfer(int from, int to) {
    int low = from < to ? from : to;
    pthread_mutex_lock(&accounts[low]);
    pthread_mutex_lock(&accounts[1 - low]);
    balances[from]--;
    balances[to]++;
    pthread_mutex_unlock(&accounts[1 - low]);
    pthread_mutex_unlock(&accounts[low]);
}

static void *there(void *unused) {
    transfer(0, 1);
    return unused;
}

static void *back(void *unused) {
    transfer(1, 0);
    return unused;
}

int main(void) {
    pthread_t threads[2];
    pthread_create(&threads[0], NULL, there, NULL);
    pthread_create(&threads[1], NULL, back, NULL);
    for (int i = 0; i < 2; i++) pthread_join(threads[i], NULL);
    return 0;
}
