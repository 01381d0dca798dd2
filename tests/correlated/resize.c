// bug: a vector's capacity grows in one critical section and its memory in the next; who appends between writes behind its end
// shows: atomicity-violation
#include <assert.h>
#include <pthread.h>
#include <stdlib.h>

struct vector {
    pthread_mutex_t lock;
    size_t length, capacity, allocated;
    int *items;
};
static struct vector numbers = {PTHREAD_MUTEX_INITIALIZER, 0, 2, 2, NULL};

static void reserve(struct vector *v, size_t capacity) {
    pthread_mutex_lock(&v->lock);
    v->capacity = capacity;
#ifndef FIXED
    pthread_mutex_unlock(&v->lock);
    pthread_mutex_lock(&v->lock);
#endif
    v->items = realloc(v->items, capacity * sizeof *v->items);
    v->allocated = capacity;
    pthread_mutex_unlock(&v->lock);
}

static int append(struct vector *v, int item) {
    pthread_mutex_lock(&v->lock);
    int fits = v->length < v->capacity;
    if (fits) {
        assert(v->length < v->allocated);
        v->items[v->length++] = item;
    }
    pthread_mutex_unlock(&v->lock);
    return fits;
}

static void *grow(void *unused) {
    reserve(&numbers, 64);
    return unused;
}

static void *fill(void *unused) {
    for (int i = 0; i < 4; i++) append(&numbers, i);
    return unused;
}

int main(void) {
    numbers.items = calloc(numbers.allocated, sizeof *numbers.items);
    pthread_t one, other;
    pthread_create(&one, NULL, grow, NULL);
    pthread_create(&other, NULL, fill, NULL);
    pthread_join(one, NULL);
    pthread_join(other, NULL);
    return 0;
}
