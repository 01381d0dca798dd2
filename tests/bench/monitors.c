// Nested monitors: the outer one guards a table of accounts, an inner one each account. Threads in pairs move money to and fro
// between two accounts; who finds an account empty waits for the partner, with the outer lock released by the condition variable.
// Usage: monitors [TRANSFERS [THREADS]] (an even number of threads)
// Check: every account ends with what it began with.
// Race-free: a balance is changed with its account's lock held; the table's lock is held by who waits or wakes.
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>

enum { FIRST_BALANCE = 32, MOST_THREADS = 64 };

struct account {
    pthread_mutex_t lock;
    long balance;
};

static struct account accounts[MOST_THREADS];
static pthread_mutex_t table = PTHREAD_MUTEX_INITIALIZER;
static pthread_cond_t deposited = PTHREAD_COND_INITIALIZER;
static size_t transfers = 120000, threads = 4;

static long change(struct account *account, long amount) {
    pthread_mutex_lock(&account->lock);
    account->balance += amount;
    long balance = account->balance;
    pthread_mutex_unlock(&account->lock);
    return balance;
}

static void transfer(struct account *from, struct account *to) {
    pthread_mutex_lock(&table);
    while (change(from, 0) == 0)
        pthread_cond_wait(&deposited, &table);
    change(from, -1);
    if (change(to, 1) == 1) // it was empty: somebody may wait for it
        pthread_cond_broadcast(&deposited);
    pthread_mutex_unlock(&table);
}

// The account of this number and that of its partner.
static void *run(void *argument) {
    size_t self = (size_t)argument;
    for (size_t i = 0; i < transfers; i++)
        transfer(&accounts[self], &accounts[self ^ 1]);
    return NULL;
}

int main(int count, char **arguments) {
    if (count > 1)
        transfers = strtoul(arguments[1], NULL, 10);
    if (count > 2)
        threads = strtoul(arguments[2], NULL, 10);
    if (threads == 0 || threads % 2 != 0 || threads > MOST_THREADS)
        return 2;
    for (size_t i = 0; i < threads; i++) {
        pthread_mutex_init(&accounts[i].lock, NULL);
        accounts[i].balance = FIRST_BALANCE;
    }
    pthread_t handles[MOST_THREADS];
    for (size_t i = 0; i < threads; i++)
        if (pthread_create(&handles[i], NULL, run, (void *)i) != 0)
            return 2;
    for (size_t i = 0; i < threads; i++)
        pthread_join(handles[i], NULL);
    int right = 1;
    for (size_t i = 0; i < threads; i++) {
        right &= accounts[i].balance == FIRST_BALANCE;
        pthread_mutex_destroy(&accounts[i].lock);
    }
    printf("monitors: %zu transfers with %zu threads: %s\n", transfers * threads, threads, right ? "right" : "WRONG");
    return !right;
}
