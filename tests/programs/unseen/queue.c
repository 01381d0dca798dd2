// Messages go through a queue of the library.
// race: 3 4
// ordered: 1 2
#include <pthread.h>
#include <sched.h>
#include <stdlib.h>

struct queue;
struct queue *queue_new(void);
void queue_push(struct queue *queue, void *message);
void *queue_pop(struct queue *queue);

#ifdef LIBRARY
struct node {
    struct node *next;
    void *message;
};
struct queue {
    struct node *head;
};
struct queue *queue_new(void) {
    return calloc(1, sizeof(struct queue));
}
void queue_push(struct queue *queue, void *message) {
    struct node *node = malloc(sizeof *node);
    node->message = message;
    node->next = __atomic_load_n(&queue->head, __ATOMIC_RELAXED);
    while (!__atomic_compare_exchange_n(&queue->head, &node->next, node, 0, __ATOMIC_RELEASE, __ATOMIC_RELAXED)) {
    }
}
void *queue_pop(struct queue *queue) {
    struct node *node;
    while (!(node = __atomic_exchange_n(&queue->head, 0, __ATOMIC_ACQUIRE))) sched_yield();
    void *message = node->message;
    free(node);
    return message;
}
#else
static struct queue *queue;
int count;

static void *first(void *unused) {
    int *message = malloc(sizeof *message);
    *message = 7; // @1
    queue_push(queue, message);
    count = 1; // @3
    return unused;
}

static void *second(void *unused) {
    count = 2; // @4
    int *message = queue_pop(queue);
    return *message == 7 ? unused : message; // @2
}

int main(void) {
    pthread_t one, other;
    queue = queue_new();
    pthread_create(&one, 0, first, 0);
    pthread_create(&other, 0, second, 0);
    pthread_join(one, 0);
    pthread_join(other, 0);
    return 0;
}
#endif
