// bug: whether the page is there is looked at in one critical section, and it is used in the next
// shows: failure
#define _GNU_SOURCE
#include <pthread.h>
#include <sys/mman.h>

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static int *page;
static int there;

static void *user(void *unused) {
    pthread_mutex_lock(&lock);
    int is_there = there;
#ifndef FIXED
    pthread_mutex_unlock(&lock);
    pthread_mutex_lock(&lock);
#endif
    if (is_there) page[5] += 1;
    pthread_mutex_unlock(&lock);
    return unused;
}

int main(void) {
    pthread_t thread;
    page = mmap(0, 4096, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    there = 1;
    pthread_create(&thread, NULL, user, NULL);
    pthread_mutex_lock(&lock);
    munmap(page, 4096);
    there = 0;
    pthread_mutex_unlock(&lock);
    pthread_join(thread, NULL);
    return 0;
}
