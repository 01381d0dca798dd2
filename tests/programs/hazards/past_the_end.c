// One page of memory, with nothing behind it that may be touched.
// Shows: a crash in every run: the loop runs one element too far.
// True:  the thread writes the element behind the last one of the page that main has mapped.
// expect: failure crashed
// tells: the address is right behind the end of mapping of 4096 bytes made at main (past_the_end.c:19)
#define _GNU_SOURCE
#include <pthread.h>
#include <sys/mman.h>

static int *numbers;

static void *fill(void *unused) {
    for (int i = 0; i <= 1024; i++) numbers[i] = i;
    return unused;
}

int main(void) {
    char *room = mmap(0, 3 * 4096, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    numbers = mmap(room + 4096, 4096, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_FIXED, -1, 0);
    pthread_t thread;
    pthread_create(&thread, 0, fill, 0);
    pthread_join(thread, 0);
    return 1;
}
