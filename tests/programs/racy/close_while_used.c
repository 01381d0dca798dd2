// A descriptor that one thread closes while another one still writes to it.
// Shows: using a descriptor and closing it conflict, though no memory is touched: who opens a file in between gets the bytes.
// True:  main closes the end of the pipe that the thread uses, and joins the thread only then.
// expect: race 13 22 co-enabled
#include <pthread.h>
#include <stdio.h>
#include <unistd.h>

static int ends[2];

static void *say(void *unused) {
    // Nothing is said by a closed descriptor.
    if (write(ends[1], "x", 1) != 1)
        return NULL;
    return unused;
}

int main(void) {
    pthread_t thread;
    if (pipe(ends) != 0 || pthread_create(&thread, NULL, say, NULL) != 0)
        return 1;
    close(ends[1]);
    pthread_join(thread, NULL);
    close(ends[0]);
    puts("closed");
    return 0;
}
