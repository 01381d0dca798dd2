// A heap object shared without a lock.
// Shows: a race on a field of an allocated object, named by its allocation site.
// True:  both threads get the pointer when they are created.
// expect: race 16 22 co-enabled
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>

struct account {
    long id;
    long balance;
};

static void *deposit(void *argument) {
    struct account *account = argument;
    account->balance += 10;
    return NULL;
}

static void *withdraw(void *argument) {
    struct account *account = argument;
    account->balance -= 4;
    return NULL;
}

int main(void) {
    struct account *account = calloc(1, sizeof *account);
    pthread_t one, two;
    pthread_create(&one, NULL, deposit, account);
    pthread_create(&two, NULL, withdraw, account);
    pthread_join(one, NULL);
    pthread_join(two, NULL);
    printf("%ld\n", account->balance);
    free(account);
    return 0;
}
