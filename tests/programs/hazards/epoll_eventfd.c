// epoll, eventfd and timerfd.
// Shows: waiting for events of several kernel objects.
// True:  the other thread adds 3 to the event counter; the timer expires by itself.
// expect: none
#include <pthread.h>
#include <stdint.h>
#include <sys/epoll.h>
#include <sys/eventfd.h>
#include <sys/timerfd.h>
#include <unistd.h>

static int event;

static void *add(void *unused) {
    uint64_t three = 3;
    return write(event, &three, sizeof three) == sizeof three ? NULL : (void *)1;
}

int main(void) {
    event = eventfd(0, 0);
    int timer = timerfd_create(CLOCK_MONOTONIC, 0);
    struct itimerspec soon = {{0, 0}, {0, 5000000}};
    timerfd_settime(timer, 0, &soon, NULL);
    int set = epoll_create1(0);
    struct epoll_event wanted = {.events = EPOLLIN};
    wanted.data.fd = event;
    epoll_ctl(set, EPOLL_CTL_ADD, event, &wanted);
    wanted.data.fd = timer;
    epoll_ctl(set, EPOLL_CTL_ADD, timer, &wanted);

    pthread_t thread;
    pthread_create(&thread, NULL, add, NULL);
    uint64_t added = 0, expired = 0;
    while (added == 0 || expired == 0) {
        struct epoll_event got[2];
        int count = epoll_wait(set, got, 2, -1);
        for (int i = 0; i < count; i++) {
            uint64_t *value = got[i].data.fd == event ? &added : &expired;
            if (read(got[i].data.fd, value, sizeof *value) != sizeof *value)
                return 2;
        }
    }
    void *result;
    pthread_join(thread, &result);
    return result == NULL && added == 3 && expired == 1 ? 0 : 1;
}
