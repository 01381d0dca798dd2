// What is written after the line was put into a stream.
// Shows: streams order what was before the bytes that were taken, and nothing behind; regular files order nothing.
// True:  one unordered pair for each way.
// expect: race 21 35 co-enabled
// expect: race 24 38 co-enabled
// expect: race 27 41 co-enabled
#define _GNU_SOURCE
#include <pthread.h>
#include <stdio.h>
#include <unistd.h>

static int by_stream, by_descriptor, by_file;
static FILE *to, *from, *file;
static int ends[2], others[2];

static void *first(void *unused) {
    char line[] = "1\n";

    fputs(line, to);
    fflush(to);
    by_stream = 1;

    dprintf(others[1], "%s", line);
    by_descriptor = 1;


    by_file = 1;
    fputs(line, file);
    return unused;
}

static void *second(void *unused) {
    char text[8];
    (void)!fgets(text, sizeof text, from);
    by_stream += 1;

    (void)!read(others[0], text, sizeof text);
    by_descriptor += 1;

    fputs("2\n", file);
    by_file += 1;
    return unused;
}

int main(void) {
    if (pipe(ends) != 0 || pipe(others) != 0)
        return 2;
    to = fdopen(dup(ends[1]), "w");
    from = fdopen(ends[0], "r");
    file = tmpfile();
    pthread_t threads[2];
    pthread_create(&threads[0], NULL, second, NULL);
    pthread_create(&threads[1], NULL, first, NULL);
    pthread_join(threads[1], NULL);
    pthread_join(threads[0], NULL);
    return 0;
}
