// Blocks that grow and shrink.
// Shows: realloc in place and with a move, of null, and to nothing; calloc; strdup.
// True:  each thread uses its own blocks.
// expect: none
#include <pthread.h>
#include <stdlib.h>
#include <string.h>

static void *work(void *argument) {
    int *failed = argument;
    char *block = NULL;
    size_t size = 0;
    for (int i = 0; i < 300; i++) {
        size_t wanted = (size_t)(i * 7919) % 20000 + 1;
        block = realloc(block, wanted);
        if (i > 0)
            *failed += block[0] != (char)(i - 1);
        if (wanted > size)
            memset(block + size, 1, wanted - size);
        block[0] = (char)i;
        size = wanted;
    }
    free(block);
    int *zeros = calloc(100, sizeof *zeros);
    for (int i = 0; i < 100; i++)
        *failed += zeros[i] != 0;
    free(zeros);
    char *text = strdup("copied");
    *failed += strcmp(text, "copied") != 0;
    free(text);
    return NULL;
}

int main(void) {
    pthread_t threads[3];
    int failed[3] = {0, 0, 0};
    for (int i = 0; i < 3; i++)
        pthread_create(&threads[i], NULL, work, &failed[i]);
    for (int i = 0; i < 3; i++)
        pthread_join(threads[i], NULL);
    return failed[0] + failed[1] + failed[2] ? 1 : 0;
}
