// Three workers share a queue of items of four kinds.
// Shows: a race of two items that one worker took; forced, other workers take them, and another race may come about first.
// True:  items of kind 3 update `statistic` without the lock that kind 2 holds. Kinds 0 and 1 take two locks in opposite order.
// expect: race 63 67 co-enabled
// expect: race 67 67 co-enabled
// allow: deadlock 45 45
#include <pthread.h>
#include <stdlib.h>

struct item {
    int kind;
    struct item *next;
};

static pthread_mutex_t queue = PTHREAD_MUTEX_INITIALIZER, a = PTHREAD_MUTEX_INITIALIZER, b = PTHREAD_MUTEX_INITIALIZER;
static pthread_cond_t filled = PTHREAD_COND_INITIALIZER;
static struct item *head;
static int closed, statistic, left, right;

static void push(int kind) {
    struct item *item = malloc(sizeof *item);
    item->kind = kind;
    pthread_mutex_lock(&queue);
    item->next = head;
    head = item;
    pthread_cond_signal(&filled);
    pthread_mutex_unlock(&queue);
}

static struct item *pop(void) {
    pthread_mutex_lock(&queue);
    while (!head && !closed) {
        pthread_cond_wait(&filled, &queue);
    }
    struct item *item = head;
    if (item) {
        head = item->next;
    }
    pthread_mutex_unlock(&queue);
    return item;
}

static void transfer(pthread_mutex_t *first, pthread_mutex_t *second) {
    pthread_mutex_lock(first);
    pthread_mutex_lock(second);
    left++;
    right--;
    pthread_mutex_unlock(second);
    pthread_mutex_unlock(first);
}

static void *work(void *unused) {
    for (struct item *item = pop(); item; item = pop()) {
        switch (item->kind) {
        case 0:
            transfer(&a, &b);
            break;
        case 1:
            transfer(&b, &a);
            break;
        case 2:
            pthread_mutex_lock(&a);
            statistic++;
            pthread_mutex_unlock(&a);
            break;
        default:
            statistic++;
        }
        free(item);
    }
    return unused;
}

int main(void) {
    pthread_t threads[3];
    for (int i = 0; i < 3; i++) {
        pthread_create(&threads[i], NULL, work, NULL);
    }
    for (int i = 0; i < 8; i++) {
        push(i % 4);
    }
    pthread_mutex_lock(&queue);
    closed = 1;
    pthread_cond_broadcast(&filled);
    pthread_mutex_unlock(&queue);
    for (int i = 0; i < 3; i++) {
        pthread_join(threads[i], NULL);
    }
    return left == 4 && right == -4 ? 0 : 1;
}
