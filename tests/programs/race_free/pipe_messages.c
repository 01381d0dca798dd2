// Messages through pipes.
// Shows: threads that share nothing but file descriptors and pass values, not pointers.
// True:  no byte of memory is used by two threads, but for what main wrote before and reads after the thread's life.
// expect: none
#include <pthread.h>
#include <unistd.h>

static int requests[2], answers[2];

static void *square(void *unused) {
    int number;
    while (read(requests[0], &number, sizeof number) == sizeof number) {
        number *= number;
        if (write(answers[1], &number, sizeof number) != sizeof number)
            break;
    }
    return NULL;
}

int main(void) {
    pthread_t thread;
    if (pipe(requests) != 0 || pipe(answers) != 0)
        return 2;
    pthread_create(&thread, NULL, square, NULL);
    int sum = 0;
    for (int i = 1; i <= 10; i++) {
        int answer;
        if (write(requests[1], &i, sizeof i) != sizeof i)
            return 2;
        if (read(answers[0], &answer, sizeof answer) != sizeof answer)
            return 2;
        sum += answer;
    }
    close(requests[1]);
    pthread_join(thread, NULL);
    return sum == 385 ? 0 : 1;
}
