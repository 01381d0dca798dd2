// Words of a file counted by several threads.
// Shows: input from a regular file named by an argument; the same bytes in every run.
// True:  threads claim lines with an atomic counter and add up under a lock.
// expect: none
#include <ctype.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>

enum { LINES = 64 };
static char *lines[LINES];
static int line_count, words, claimed_by[LINES];
static atomic_int next_line;
static pthread_mutex_t m = PTHREAD_MUTEX_INITIALIZER;

static void *count(void *argument) {
    for (;;) {
        int line = atomic_fetch_add(&next_line, 1);
        if (line >= line_count)
            return NULL;
        claimed_by[line] = *(int *)argument;
        int found = 0, inside = 0;
        for (const char *c = lines[line]; *c; c++) {
            int letter = isalpha((unsigned char)*c) != 0;
            found += letter && !inside;
            inside = letter;
        }
        pthread_mutex_lock(&m);
        words += found;
        pthread_mutex_unlock(&m);
    }
}

int main(int argc, char **argv) {
    FILE *file = argc > 1 ? fopen(argv[1], "r") : NULL;
    if (file == NULL)
        return 2;
    char *line = NULL;
    size_t size = 0;
    while (line_count < LINES && getline(&line, &size, file) > 0) {
        lines[line_count++] = line;
        line = NULL;
        size = 0;
    }
    free(line);
    fclose(file);
    pthread_t threads[3];
    int numbers[3] = {0, 1, 2};
    for (int i = 0; i < 3; i++)
        pthread_create(&threads[i], NULL, count, &numbers[i]);
    for (int i = 0; i < 3; i++)
        pthread_join(threads[i], NULL);
    for (int i = 0; i < line_count; i++) {
        printf("%d", claimed_by[i]);
        free(lines[i]);
    }
    printf("\n%d lines, %d words\n", line_count, words);
    return words == 89 ? 0 : 1;
}
