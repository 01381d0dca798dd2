// A pointer to the mailbox lies in a structure that the program changes and passes on.
// ordered: 1 2
#include <pthread.h>
#include <sched.h>
#include <stdlib.h>

struct mailbox;
struct post {
    struct mailbox *box;
    int number;
};
struct mailbox *mailbox_new(void);
void post_send(struct post *post);
void post_receive(struct post *post);

#ifdef LIBRARY
struct mailbox {
    int full;
};
struct mailbox *mailbox_new(void) {
    return calloc(1, sizeof(struct mailbox));
}
void post_send(struct post *post) {
    __atomic_store_n(&post->box->full, 1, __ATOMIC_RELEASE);
}
void post_receive(struct post *post) {
    while (!__atomic_load_n(&post->box->full, __ATOMIC_ACQUIRE)) sched_yield();
}
#else
static struct mailbox *box;
int data;

static void *first(void *unused) {
    struct post *post = malloc(sizeof *post);
    post->box = box;
    post->number = 1;
    data = 1; // @1
    post_send(post);
    return unused;
}

static void *second(void *unused) {
    struct post *post = malloc(sizeof *post);
    post->box = box;
    post->number = 2;
    post_receive(post);
    return data == 1 ? unused : &data; // @2
}

int main(void) {
    pthread_t one, other;
    box = mailbox_new();
    pthread_create(&one, 0, first, 0);
    pthread_create(&other, 0, second, 0);
    pthread_join(one, 0);
    pthread_join(other, 0);
    return 0;
}
#endif
