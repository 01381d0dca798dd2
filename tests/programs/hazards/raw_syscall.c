// A blocking system call made by hand.
// Shows: a read that no library function announces: only the thread's state in the kernel tells that it is blocked.
// True:  main writes after creating the reader; the byte travels through the pipe.
// expect: none
#include <pthread.h>
#include <sys/syscall.h>
#include <unistd.h>

static int ends[2];

static long raw_read(int descriptor, void *buffer, unsigned long size) {
    long result;
    __asm__ volatile("syscall"
                     : "=a"(result)
                     : "0"((long)SYS_read), "D"((long)descriptor), "S"(buffer), "d"(size)
                     : "rcx", "r11", "memory");
    return result;
}

static void *read_one(void *argument) {
    char byte = 0;
    if (raw_read(ends[0], &byte, 1) == 1)
        *(char *)argument = byte;
    return NULL;
}

int main(void) {
    char byte = 0;
    if (pipe(ends) != 0)
        return 2;
    pthread_t thread;
    pthread_create(&thread, NULL, read_one, &byte);
    if (write(ends[1], "x", 1) != 1)
        return 2;
    pthread_join(thread, NULL);
    return byte == 'x' ? 0 : 1;
}
