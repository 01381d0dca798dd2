// A sorted list with a lock a node.
// Shows: hand-over-hand locking of heap nodes; lock identities that are heap addresses.
// True:  a link is read and written with the lock of the node that holds it; locks are taken in list order.
// expect: none
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>

struct node {
    pthread_mutex_t lock;
    int key;
    struct node *next;
};

static struct node *new_node(int key, struct node *next) {
    struct node *node = malloc(sizeof *node);
    pthread_mutex_init(&node->lock, NULL);
    node->key = key;
    node->next = next;
    return node;
}

static struct node *head;

static void insert(int key) {
    struct node *previous = head;
    pthread_mutex_lock(&previous->lock);
    while (previous->next != NULL && previous->next->key < key) {
        struct node *next = previous->next;
        pthread_mutex_lock(&next->lock);
        pthread_mutex_unlock(&previous->lock);
        previous = next;
    }
    previous->next = new_node(key, previous->next);
    pthread_mutex_unlock(&previous->lock);
}

static void *work(void *argument) {
    int me = *(int *)argument;
    for (int i = 0; i < 8; i++)
        insert((i * 5 + me * 3) % 24);
    return NULL;
}

int main(void) {
    pthread_t threads[3];
    int numbers[3] = {0, 1, 2};
    head = new_node(-1, NULL);
    for (int i = 0; i < 3; i++)
        pthread_create(&threads[i], NULL, work, &numbers[i]);
    for (int i = 0; i < 3; i++)
        pthread_join(threads[i], NULL);
    int length = 0, sorted = 1, last = -1;
    for (struct node *node = head; node != NULL;) {
        sorted &= last <= node->key;
        last = node->key;
        length++;
        struct node *next = node->next;
        pthread_mutex_destroy(&node->lock);
        free(node);
        node = next;
    }
    printf("%d nodes\n", length - 1);
    return sorted && length == 25 ? 0 : 1;
}
