// Requests of libuv's pool add to one sum.
#include <stdio.h>
#include <uv.h>

static struct { long requests, sum; } results;

static void add(uv_work_t *request) { results.sum += (long)request->data; }

static void done(uv_work_t *request, int status) {
    (void)request;
    results.requests += status == 0;
}

int main(void) {
    static uv_work_t requests[4];
    uv_loop_t loop;
    uv_loop_init(&loop);
    for (long i = 0; i < 4; i++) {
        requests[i].data = (void *)(i + 1);
        uv_queue_work(&loop, &requests[i], add, done);
    }
    uv_run(&loop, UV_RUN_DEFAULT);
    uv_loop_close(&loop);
    printf("%ld requests, %ld in all\n", results.requests, results.sum);
    return 0;
}
