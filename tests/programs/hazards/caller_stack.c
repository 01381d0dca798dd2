// A stack given by the program.
// Shows: pthread_attr_setstack on heap memory, which is an ordinary block before and after.
// True:  the block is the thread's between creation and join, main's otherwise.
// expect: none
#include <pthread.h>
#include <stdlib.h>
#include <string.h>

static void *work(void *argument) {
    char local[256];
    memset(local, 3, sizeof local);
    *(int *)argument = local[255];
    return NULL;
}

int main(void) {
    size_t size = 1 << 20;
    char *stack = aligned_alloc(4096, size);
    memset(stack, 0, size);
    pthread_attr_t attributes;
    pthread_attr_init(&attributes);
    pthread_attr_setstack(&attributes, stack, size);
    pthread_t thread;
    int result = 0;
    if (pthread_create(&thread, &attributes, work, &result) != 0)
        return 2;
    pthread_join(thread, NULL);
    memset(stack, 1, size);
    free(stack);
    return result == 3 ? 0 : 1;
}
