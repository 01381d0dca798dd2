// A thread wakes libuv's loop in another one; the callback reads what was written before.
// package: libuv
// race: 3 4
// ordered: 1 2
#include <pthread.h>
#include <uv.h>

static uv_loop_t loop;
static uv_async_t wakeup;
int message;
int count;

static void woken(uv_async_t *handle) {
    if (message == 7) // @2
        uv_close((uv_handle_t *)handle, 0);
}

static void *first(void *unused) {
    message = 7; // @1
    uv_async_send(&wakeup);
    count = 1; // @3
    return unused;
}

static void *second(void *unused) {
    count = 2; // @4
    uv_run(&loop, UV_RUN_DEFAULT);
    return unused;
}

int main(void) {
    pthread_t one, other;
    uv_loop_init(&loop);
    uv_async_init(&loop, &wakeup, woken);
    pthread_create(&other, 0, second, 0);
    pthread_create(&one, 0, first, 0);
    pthread_join(one, 0);
    pthread_join(other, 0);
    return uv_loop_close(&loop);
}
