// bug: references are counted down and looked at in two steps, so that both threads may see the last one gone
// shows: use-after-free race failure
#include <pthread.h>
#include <stdatomic.h>
#include <stdlib.h>

struct object {
    atomic_int references;
    int payload;
};

static void drop(struct object *object) {
#ifdef FIXED
    if (atomic_fetch_sub(&object->references, 1) == 1) free(object);
#else
    atomic_fetch_sub(&object->references, 1);
    if (atomic_load(&object->references) == 0) free(object);
#endif
}

static void *user(void *object) {
    drop(object);
    return NULL;
}

int main(void) {
    pthread_t thread;
    struct object *object = calloc(1, sizeof *object);
    atomic_store(&object->references, 2);
    pthread_create(&thread, NULL, user, object);
    drop(object);
    pthread_join(thread, NULL);
    return 0;
}
