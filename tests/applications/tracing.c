// A library that traces: buffers of threads, which they register on first use and flush into a common log.
// Seeded race: whether tracing is on is read without the lock while main switches it off.
#include <pthread.h>
#include <stdio.h>
#include <string.h>

enum { THREADS = 3, ROUNDS = 200, SIZE = 8 };
static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static int on = 1, registered, log_length;
static int log_lines[(THREADS + 1) * ROUNDS];

struct buffer {
    int number, length, lines[SIZE];
};

static int is_on(void) {
#ifdef SEEDED
    return on;
#else
    pthread_mutex_lock(&lock);
    int now = on;
    pthread_mutex_unlock(&lock);
    return now;
#endif
}

static void flush(struct buffer *buffer) {
    pthread_mutex_lock(&lock);
    memcpy(&log_lines[log_length], buffer->lines, buffer->length * sizeof(int));
    log_length += buffer->length;
    pthread_mutex_unlock(&lock);
    buffer->length = 0;
}

static void trace(struct buffer *buffer, int line) {
    if (!is_on()) return;
    if (!buffer->number) {
        pthread_mutex_lock(&lock);
        buffer->number = ++registered;
        pthread_mutex_unlock(&lock);
    }
    buffer->lines[buffer->length++] = line;
    if (buffer->length == SIZE) flush(buffer);
}

static void *work(void *unused) {
    struct buffer buffer = {0};
    for (int i = 0; i < ROUNDS; i++) trace(&buffer, i);
    flush(&buffer);
    return unused;
}

int main(void) {
    pthread_t threads[THREADS];
    for (int i = 0; i < THREADS; i++) pthread_create(&threads[i], NULL, work, NULL);
    work(NULL);
    pthread_mutex_lock(&lock);
    on = 0;
    pthread_mutex_unlock(&lock);
    for (int i = 0; i < THREADS; i++) pthread_join(threads[i], NULL);
    printf("%d lines of %d threads\n", log_length, registered);
    return 0;
}
