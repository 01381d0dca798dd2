// crashes: the request lies in the stack of whoever made it, which has gone if it found the service closed
// story: at the address was
#define _GNU_SOURCE
#include <pthread.h>
#include <stddef.h>
#include <sys/mman.h>

enum { BYTES = 1 << 20 };
struct request {
    long number;
    int is_done;
};
static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static struct request *pending;
static int closed;

static void *client(void *unused) {
    struct request request = {1, 0};
    pthread_mutex_lock(&lock);
    pending = &request;
    pthread_mutex_unlock(&lock);
    for (int is_over = 0; !is_over;) {
        pthread_mutex_lock(&lock);
        is_over = request.is_done || closed;
        if (is_over) pending = NULL;
        pthread_mutex_unlock(&lock);
    }
    return unused;
}

static void *server(void *unused) {
    pthread_mutex_lock(&lock);
    struct request *request = pending;
    pthread_mutex_unlock(&lock);
    if (request) {
        pthread_mutex_lock(&lock);
        request->is_done = 1;
        pthread_mutex_unlock(&lock);
    }
    return unused;
}

int main(void) {
    pthread_t of_client, of_server;
    pthread_attr_t attributes;
    void *stack = mmap(NULL, BYTES, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_STACK, -1, 0);
    pthread_attr_init(&attributes);
    pthread_attr_setstack(&attributes, stack, BYTES);
    pthread_create(&of_client, &attributes, client, NULL);
    pthread_create(&of_server, NULL, server, NULL);
    pthread_mutex_lock(&lock);
    closed = 1;
    pthread_mutex_unlock(&lock);
    pthread_join(of_client, NULL);
    munmap(stack, BYTES);
    pthread_join(of_server, NULL);
    return 0;
}
