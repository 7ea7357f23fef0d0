/* Ending a wait for a lock.
 *
 * A thread that waits in fcntl() or flock() can only be woken by a signal, and a signal that comes just
 * before the call would be lost. So the handler jumps: the thread says "armed", looks whether it is
 * cancelled, and calls; whenever the signal comes while armed, it leaves by siglongjmp. Before "armed" it
 * sees the cancellation by itself. The jump may come just after the lock was granted: then the thread
 * asks once more without waiting, and that answer counts. */
#include "workspace/worker.h"

#include <pthread.h>
#include <setjmp.h>
#include <signal.h>
#include <sys/eventfd.h>
#include <unistd.h>

#include "io/fd.h"

#define WAKE_SIGNAL (SIGRTMIN + 3)
#define STACK       (256U << 10)

struct thread {
	struct worker *w;
	pthread_t id;
};

struct pool {
	struct job *first, **last; /* queued */
	struct thread threads[WORKER_WAITERS];
	size_t n, idle, max, queued;
	pthread_cond_t more;
};

struct worker {
	pthread_mutex_t lock;
	struct pool pools[2]; /* [job.waits] */
	struct job *ended, **ended_last;
	struct job jobs[WORKER_JOBS];
	struct job *free;
	size_t waiting; /* jobs that wait, from job_new() to job_free() */
	int fd;
	bool stop;
};

/* NOLINTNEXTLINE(cppcoreguidelines-avoid-non-const-global-variables): a signal handler has no argument */
static __thread sigjmp_buf out_of_wait;
/* NOLINTNEXTLINE(cppcoreguidelines-avoid-non-const-global-variables): likewise */
static __thread volatile sig_atomic_t armed;

static void on_wake(int sig)
{
	(void)sig;
	if (armed) {
		armed = 0;
		siglongjmp(out_of_wait, 1);
	}
}

int worker_wait(struct job *j, int (*wait)(struct job *), int (*again)(struct job *))
{
	int r;

	/* a signal that was meant for the job before this one leads here uncancelled: wait on */
	while (sigsetjmp(out_of_wait, 1))
		;
	if (__atomic_load_n(&j->cancelled, __ATOMIC_SEQ_CST)) {
		r = again(j);
		return r == -EAGAIN || r == -EACCES ? -EINTR : r;
	}
	armed = 1;
	if (__atomic_load_n(&j->cancelled, __ATOMIC_SEQ_CST))
		siglongjmp(out_of_wait, 1);
	r = wait(j);
	armed = 0;
	return r;
}

static void end(struct worker *w, struct job *j)
{
	uint64_t one = 1;

	j->state = JOB_ENDED;
	j->by = NULL;
	j->next = NULL;
	*w->ended_last = j;
	w->ended_last = &j->next;
	(void)!write(w->fd, &one, sizeof(one));
}

static void *work(void *arg)
{
	struct thread *t = arg;
	struct worker *w = t->w;
	struct pool *p = &w->pools[t >= w->pools[1].threads];
	struct job *j;

	pthread_mutex_lock(&w->lock);
	for (;;) {
		p->idle++;
		while (!p->first && !w->stop)
			pthread_cond_wait(&p->more, &w->lock);
		p->idle--;
		if (w->stop)
			break;
		j = p->first;
		p->first = j->next;
		if (!p->first)
			p->last = &p->first;
		p->queued--;
		j->state = JOB_RUNNING;
		j->by = t;
		pthread_mutex_unlock(&w->lock);
		j->result = j->run(j);
		pthread_mutex_lock(&w->lock);
		end(w, j);
	}
	pthread_mutex_unlock(&w->lock);
	return NULL;
}

int worker_new(struct worker **ret)
{
	struct sigaction sa = { .sa_handler = on_wake };
	struct worker *w = calloc(1, sizeof(*w));
	size_t i;

	if (!w)
		return -ENOMEM;
	w->fd = eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK);
	if (w->fd < 0 || sigaction(WAKE_SIGNAL, &sa, NULL) < 0) {
		int r = -errno;

		fd_close(w->fd);
		free(w);
		return r;
	}
	pthread_mutex_init(&w->lock, NULL);
	for (i = 0; i < 2; i++) {
		w->pools[i].last = &w->pools[i].first;
		w->pools[i].max = i ? WORKER_WAITERS : WORKER_SHORT;
		pthread_cond_init(&w->pools[i].more, NULL);
	}
	w->ended_last = &w->ended;
	for (i = WORKER_JOBS; i-- > 0;)
		job_free(w, &w->jobs[i]);
	*ret = w;
	return 0;
}

void worker_stop(struct worker *w)
{
	size_t i, k;

	pthread_mutex_lock(&w->lock);
	w->stop = true;
	pthread_cond_broadcast(&w->pools[0].more);
	pthread_cond_broadcast(&w->pools[1].more);
	pthread_mutex_unlock(&w->lock);
	for (i = 0; i < WORKER_JOBS; i++)
		worker_cancel(w, &w->jobs[i]);
	for (i = 0; i < 2; i++) {
		for (k = 0; k < w->pools[i].n; k++)
			pthread_join(w->pools[i].threads[k].id, NULL);
		w->pools[i].n = 0;
	}
}

struct worker *worker_free(struct worker *w)
{
	if (!w)
		return NULL;
	worker_stop(w);
	pthread_cond_destroy(&w->pools[0].more);
	pthread_cond_destroy(&w->pools[1].more);
	pthread_mutex_destroy(&w->lock);
	fd_close(w->fd);
	free(w);
	return NULL;
}

struct job *job_new(struct worker *w, bool waits)
{
	struct job *j = w->free;

	if (!j || (waits && w->waiting >= WORKER_WAITERS))
		return NULL;
	w->free = j->next;
	*j = (struct job) { .used = true, .waits = waits };
	w->waiting += waits;
	return j;
}

void job_free(struct worker *w, struct job *j)
{
	w->waiting -= j->waits;
	*j = (struct job) { .next = w->free };
	w->free = j;
}

static int thread_new(struct worker *w, struct pool *p)
{
	struct thread *t = &p->threads[p->n];
	pthread_attr_t a;
	int r;

	if (p->n == p->max || pthread_attr_init(&a))
		return -EAGAIN;
	t->w = w;
	(void)pthread_attr_setstacksize(&a, STACK);
	r = pthread_create(&t->id, &a, work, t);
	pthread_attr_destroy(&a);
	if (r)
		return -EAGAIN;
	p->n++;
	return 0;
}

int worker_start(struct worker *w, struct job *j)
{
	struct pool *p = &w->pools[j->waits];
	int r = 0;

	pthread_mutex_lock(&w->lock);
	if (p->idle <= p->queued)
		r = thread_new(w, p);
	/* without one of its own it waits for a thread that ends by itself, if there is any */
	if (r < 0 && (j->waits || !p->n)) {
		pthread_mutex_unlock(&w->lock);
		return r;
	}
	j->state = JOB_QUEUED;
	j->next = NULL;
	*p->last = j;
	p->last = &j->next;
	p->queued++;
	pthread_cond_signal(&p->more);
	pthread_mutex_unlock(&w->lock);
	return 0;
}

struct job *worker_ended(struct worker *w)
{
	struct job *j;
	uint64_t n;

	pthread_mutex_lock(&w->lock);
	j = w->ended;
	if (j)
		w->ended = j->next;
	if (!w->ended) {
		w->ended_last = &w->ended;
		(void)!read(w->fd, &n, sizeof(n));
	}
	pthread_mutex_unlock(&w->lock);
	return j;
}

void worker_cancel(struct worker *w, struct job *j)
{
	pthread_mutex_lock(&w->lock);
	if (j->waits && !j->cancelled && (j->state == JOB_QUEUED || j->state == JOB_RUNNING)) {
		__atomic_store_n(&j->cancelled, true, __ATOMIC_SEQ_CST);
		if (j->by)
			pthread_kill(j->by->id, WAKE_SIGNAL);
	}
	pthread_mutex_unlock(&w->lock);
}

int worker_fd(const struct worker *w)
{
	return w->fd;
}

struct job *worker_each(struct worker *w, size_t *at)
{
	struct job *j;

	while (*at < WORKER_JOBS) {
		j = &w->jobs[(*at)++];
		if (j->used)
			return j;
	}
	return NULL;
}
