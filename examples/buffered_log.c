/* After the buffered access log of a web server: the length of the log and what is in it belong together. */
#include <pthread.h>
#include <stdio.h>
#include <string.h>

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static char text[4096];
static size_t length;

static size_t end_of_log(void) {
    pthread_mutex_lock(&lock);
    size_t end = length;
    pthread_mutex_unlock(&lock);
    return end;
}

static void append(const char *line) {
    size_t at = end_of_log();
    size_t size = strlen(line);
    pthread_mutex_lock(&lock);
    memcpy(text + at, line, size);
    length = at + size;
    pthread_mutex_unlock(&lock);
}

static void *serve(void *line) {
    append(line);
    return NULL;
}

int main(void) {
    pthread_t one, other;
    pthread_create(&one, NULL, serve, "GET /index\n");
    pthread_create(&other, NULL, serve, "GET /style\n");
    pthread_join(one, NULL);
    pthread_join(other, NULL);
    fwrite(text, 1, length, stdout);
    return 0;
}
