/* onednn.c -- the only user of oneDNN (2.6 or later); empty without -DUSE_DNNL.
 *
 * Products: dnnl_sgemm, for gemm.c. Convolutions: the three passes of conv.h in float. Activations
 * stay channels last. Weights are reordered once per call into the library's blocked layout for
 * this CPU.
 *
 * The library must not choose the number of threads, since that changes the order of sums. Its
 * OpenMP build reads the number of threads when a primitive is created, and again when it runs:
 *   - a primitive is created while that number is 1, for a fixed chunk of CONV_CHUNK images (one
 *     more for the remaining images). It is constant, so all threads use it at once; each thread
 *     has its own memory objects and scratchpad;
 *   - it runs inside our regions, where the number is set to 1 too: to the library, a region of one
 *     thread is not parallel.
 * dw: every chunk writes its own sum. The sums are added in the order of the chunks, still in the
 * library's blocks, and then reordered.
 *
 * A conv_plans contains all that a call needs besides its arrays: primitives by shape, and shared
 * memory. */
#ifdef USE_DNNL
#include <dnnl.h>
#include <omp.h>
#include <stdlib.h>
#include <string.h>

#include "engine/onednn/onednn.h"

bool gemm_dnnl(bool ta, bool tb, int64_t m, int64_t n, int64_t k, float alpha, const float *a,
               int64_t lda, const float *b, int64_t ldb, float beta, float *c, int64_t ldc) {
    return dnnl_sgemm(ta ? 'T' : 'N', tb ? 'T' : 'N', m, n, k, alpha, a, lda, b, ldb, beta, c,
                      ldc) == dnnl_success;
}

/* -- plans: prepared once per shape ------------------------------------------------------------ */

typedef struct plan plan;
struct plan {
    plan *next;
    conv_pass pass;
    conv_shape s; /* images: of one chunk */
    bool usable;  /* false: nothing below is set */
    dnnl_primitive_t chunk;
    dnnl_primitive_t reorder;              /* w plain -> blocked; for dw blocked -> plain */
    dnnl_memory_desc_t x, y, plain, block; /* plain and block: w as ours and as the library's */
    dnnl_memory_desc_t scratch;
};

struct conv_plans {
    dnnl_engine_t engine;
    dnnl_stream_t stream; /* for reorders; each thread has a stream for chunks */
    plan *first;
    scratch_memory *memory;
};

static void plan_free(plan *p) {
    if (p->chunk) dnnl_primitive_destroy(p->chunk);
    if (p->reorder) dnnl_primitive_destroy(p->reorder);
    free(p);
}

void conv_plans_free(void *plans) {
    conv_plans *c = plans;
    if (!c) return;
    for (plan *p = c->first, *next; p; p = next) {
        next = p->next;
        plan_free(p);
    }
    if (c->stream) dnnl_stream_destroy(c->stream);
    if (c->engine) dnnl_engine_destroy(c->engine);
    free(c);
}

conv_plans *conv_plans_create(scratch_memory *memory, sr_failure *why) {
    conv_plans *c = calloc(1, sizeof *c);
    if (c) c->memory = memory;
    if (c && dnnl_engine_create(&c->engine, dnnl_cpu, 0) == dnnl_success &&
        dnnl_stream_create(&c->stream, c->engine, dnnl_stream_default_flags) == dnnl_success)
        return c;
    conv_plans_free(c);
    sr_fail(why, SR_MEMORY, "out of memory for convolutions");
    return NULL;
}

static dnnl_status_t describe_arrays(plan *p, dnnl_memory_desc_t *any) {
    const conv_shape *s = &p->s;
    dnnl_dims_t x = {s->images, s->in, s->height, s->width};
    dnnl_dims_t w = {s->out, s->in, s->kernel_h, s->kernel_w};
    dnnl_dims_t y = {s->images, s->out, s->out_height, s->out_width};
    dnnl_status_t bad = dnnl_memory_desc_init_by_tag(&p->x, 4, x, dnnl_f32, dnnl_nhwc);
    if (!bad) bad = dnnl_memory_desc_init_by_tag(&p->y, 4, y, dnnl_f32, dnnl_nhwc);
    if (!bad) bad = dnnl_memory_desc_init_by_tag(&p->plain, 4, w, dnnl_f32, dnnl_ohwi);
    if (!bad) bad = dnnl_memory_desc_init_by_tag(any, 4, w, dnnl_f32, dnnl_format_tag_any);
    return bad;
}

/* Describes the pass to the library. Backward descriptions refer to a forward one. */
static dnnl_status_t describe_pass(const plan *p, conv_pass pass, const dnnl_memory_desc_t *w,
                                   dnnl_convolution_desc_t *desc) {
    const dnnl_alg_kind_t direct = dnnl_convolution_direct;
    dnnl_dims_t stride = {p->s.stride, p->s.stride}, pad = {p->s.pad, p->s.pad};
    if (pass == CONV_FORWARD)
        return dnnl_convolution_forward_desc_init(desc, dnnl_forward_training, direct, &p->x, w,
                                                  NULL, &p->y, stride, pad, pad);
    if (pass == CONV_BACKWARD_DATA)
        return dnnl_convolution_backward_data_desc_init(desc, direct, &p->x, w, &p->y, stride, pad,
                                                        pad);
    return dnnl_convolution_backward_weights_desc_init(desc, direct, &p->x, w, NULL, &p->y, stride,
                                                       pad, pad);
}

static dnnl_status_t create_desc(dnnl_engine_t engine, const plan *p, conv_pass pass,
                                 const dnnl_memory_desc_t *w, dnnl_primitive_desc_t forward,
                                 dnnl_primitive_desc_t *made) {
    dnnl_convolution_desc_t desc;
    dnnl_primitive_attr_t attr = NULL;
    dnnl_status_t bad = describe_pass(p, pass, w, &desc);
    if (!bad) bad = dnnl_primitive_attr_create(&attr);
    if (!bad) bad = dnnl_primitive_attr_set_scratchpad_mode(attr, dnnl_scratchpad_mode_user);
    if (!bad) bad = dnnl_primitive_desc_create(made, &desc, attr, engine, forward);
    if (attr) dnnl_primitive_attr_destroy(attr);
    return bad;
}

/* False for the library's fallback, which is a hundred times slower than im2col. Also false for
 * code that would write beyond its scratchpad. In oneDNN 2.6.3 jit_1x1:avx2 copies strided pixels
 * there, eight channels at a time. It overruns when the count is no multiple of eight. */
static bool is_usable(const conv_shape *s, const_dnnl_primitive_desc_t desc) {
    const char *name = NULL;
    if (dnnl_primitive_desc_query(desc, dnnl_query_impl_info_str, 0, &name) != dnnl_success ||
        !name)
        return false;
    if (!strncmp(name, "jit_1x1", 7) && s->stride > 1 && (s->in % 8 || s->out % 8)) return false;
    return strncmp(name, "ref", 3) != 0;
}

static dnnl_status_t create_reorder(dnnl_engine_t engine, plan *p) {
    bool back = p->pass == CONV_BACKWARD_WEIGHTS;
    dnnl_primitive_desc_t desc = NULL;
    dnnl_status_t bad = dnnl_reorder_primitive_desc_create(
        &desc, back ? &p->block : &p->plain, engine, back ? &p->plain : &p->block, engine, NULL);
    if (!bad) bad = dnnl_primitive_create(&p->reorder, desc);
    if (desc) dnnl_primitive_desc_destroy(desc);
    return bad;
}

static dnnl_status_t take_chunk(dnnl_engine_t engine, plan *p, const_dnnl_primitive_desc_t desc) {
    bool weights = p->pass == CONV_BACKWARD_WEIGHTS;
    p->block = *dnnl_primitive_desc_query_md(
        desc, weights ? dnnl_query_diff_weights_md : dnnl_query_weights_md, 0);
    p->scratch = *dnnl_primitive_desc_query_md(desc, dnnl_query_scratchpad_md, 0);
    dnnl_status_t bad = dnnl_primitive_create(&p->chunk, desc);
    return bad ? bad : create_reorder(engine, p);
}

/* Leaves p->usable false when the library has no fast code, or only code with the bug above. */
static dnnl_status_t plan_fill(dnnl_engine_t engine, plan *p) {
    dnnl_memory_desc_t w;
    dnnl_primitive_desc_t forward = NULL, own = NULL;
    dnnl_status_t bad = describe_arrays(p, &w);
    if (!bad) bad = create_desc(engine, p, CONV_FORWARD, &w, NULL, &forward);
    if (!bad && p->pass != CONV_FORWARD) bad = create_desc(engine, p, p->pass, &w, forward, &own);
    const_dnnl_primitive_desc_t desc = own ? own : forward;
    if (!bad && is_usable(&p->s, desc)) {
        bad = take_chunk(engine, p, desc);
        p->usable = !bad;
    }
    if (own) dnnl_primitive_desc_destroy(own);
    if (forward) dnnl_primitive_desc_destroy(forward);
    return bad == dnnl_unimplemented ? dnnl_success : bad;
}

static sr_status fail(dnnl_status_t bad, const conv_shape *s, sr_failure *why) {
    if (bad == dnnl_out_of_memory) return sr_fail(why, SR_MEMORY, "out of memory in oneDNN");
    return sr_fail(why, SR_LIBRARY,
                   "oneDNN: status %d, convolution of %lld images [%lld, %lld, %lld]", (int)bad,
                   (long long)s->images, (long long)s->height, (long long)s->width,
                   (long long)s->in);
}

/* *found: the plan for chunks of s->images images. */
static sr_status plan_find(conv_plans *c, conv_pass pass, const conv_shape *s, const plan **found,
                           sr_failure *why) {
    for (plan *p = c->first; p; p = p->next)
        if (p->pass == pass && memcmp(&p->s, s, sizeof *s) == 0) {
            *found = p;
            return SR_OK;
        }
    plan *p = calloc(1, sizeof *p);
    if (!p) return sr_fail(why, SR_MEMORY, "out of memory for convolutions");
    p->pass = pass, p->s = *s;
    int allowed = omp_get_max_threads();
    omp_set_num_threads(1);
    dnnl_status_t bad = plan_fill(c->engine, p);
    omp_set_num_threads(allowed);
    if (bad) {
        plan_free(p);
        return fail(bad, s, why);
    }
    p->next = c->first;
    *found = c->first = p;
    return SR_OK;
}

/* -- one call ---------------------------------------------------------------------------------- */

/* A call: `chunks` chunks of one plan. The pointers below `chunks` point into shared memory. */
typedef struct conv_call {
    conv_plans *c;
    const plan *p;
    conv_arrays a;
    int threads;
    int64_t chunks;
    size_t x_size, y_size, w_size;    /* numbers of x, y in a chunk, and of w in the plain layout */
    size_t block_size, scratch_bytes; /* numbers of w in blocks */
    float *block;    /* w [block_size], or sums of the chunks [chunks, block_size] */
    float *plain;    /* dw [w_size] before it is added */
    float *dx;       /* [threads, x_size], when dx is added */
    char *scratch;   /* [threads, scratch_bytes] */
    dnnl_memory_t w; /* in the layout `block`, for the passes that read w */
} conv_call;

/* Memory objects of one thread. */
typedef struct thread_objects {
    dnnl_stream_t stream;
    dnnl_memory_t x, y, w, scratch;
} thread_objects;

static size_t aligned(size_t bytes) {
    return (bytes + 63) / 64 * 64;
}

/* Divides `memory` among the arrays of the call (NULL: only counts); returns the bytes needed. */
static size_t call_layout(conv_call *j, char *memory) {
    bool weights = j->p->pass == CONV_BACKWARD_WEIGHTS, data = j->p->pass == CONV_BACKWARD_DATA;
    size_t threads = (size_t)j->threads, used = 0;
    j->block = (float *)(void *)memory;
    used += (weights ? (size_t)j->chunks : 1) * j->block_size * sizeof(float);
    j->plain = (float *)(void *)(memory + used);
    used += aligned(weights ? j->w_size * sizeof(float) : 0);
    j->dx = (float *)(void *)(memory + used);
    used += aligned(data && j->a.add ? threads * j->x_size * sizeof(float) : 0);
    j->scratch = memory + used;
    return used + threads * j->scratch_bytes;
}

/* Runs p->reorder from `from` to `to`, on this thread. */
static dnnl_status_t reorder(const conv_call *j, float *from, float *to) {
    bool back = j->p->pass == CONV_BACKWARD_WEIGHTS;
    const dnnl_memory_desc_t *source = back ? &j->p->block : &j->p->plain;
    const dnnl_memory_desc_t *target = back ? &j->p->plain : &j->p->block;
    dnnl_memory_t in = NULL, out = NULL;
    int allowed = omp_get_max_threads();
    omp_set_num_threads(1);
    dnnl_status_t bad = dnnl_memory_create(&in, source, j->c->engine, from);
    if (!bad) bad = dnnl_memory_create(&out, target, j->c->engine, to);
    dnnl_exec_arg_t args[] = {{DNNL_ARG_FROM, in}, {DNNL_ARG_TO, out}};
    if (!bad) bad = dnnl_primitive_execute(j->p->reorder, j->c->stream, 2, args);
    omp_set_num_threads(allowed);
    if (in) dnnl_memory_destroy(in);
    if (out) dnnl_memory_destroy(out);
    return bad;
}

static dnnl_status_t thread_open(thread_objects *l, const conv_call *j, int thread) {
    const plan *p = j->p;
    dnnl_engine_t e = j->c->engine;
    char *scratch = j->scratch + (size_t)thread * j->scratch_bytes;
    dnnl_status_t bad = dnnl_stream_create(&l->stream, e, dnnl_stream_default_flags);
    if (!bad) bad = dnnl_memory_create(&l->x, &p->x, e, DNNL_MEMORY_NONE);
    if (!bad) bad = dnnl_memory_create(&l->y, &p->y, e, DNNL_MEMORY_NONE);
    if (!bad && !j->w) bad = dnnl_memory_create(&l->w, &p->block, e, DNNL_MEMORY_NONE);
    if (!bad) bad = dnnl_memory_create(&l->scratch, &p->scratch, e, scratch);
    return bad;
}

static void thread_close(thread_objects *l) {
    if (l->scratch) dnnl_memory_destroy(l->scratch);
    if (l->w) dnnl_memory_destroy(l->w);
    if (l->y) dnnl_memory_destroy(l->y);
    if (l->x) dnnl_memory_destroy(l->x);
    if (l->stream) dnnl_stream_destroy(l->stream);
}

static dnnl_status_t thread_run(thread_objects *l, const conv_call *j, int64_t chunk, float *x) {
    float *y = j->a.y + (size_t)chunk * j->y_size;
    dnnl_status_t bad = dnnl_memory_set_data_handle(l->x, x);
    if (!bad) bad = dnnl_memory_set_data_handle(l->y, y);
    if (!bad && l->w)
        bad = dnnl_memory_set_data_handle(l->w, j->block + (size_t)chunk * j->block_size);
    const conv_pass pass = j->p->pass;
    dnnl_exec_arg_t args[] = {
        {pass == CONV_BACKWARD_DATA ? DNNL_ARG_DIFF_SRC : DNNL_ARG_SRC, l->x},
        {pass == CONV_FORWARD ? DNNL_ARG_DST : DNNL_ARG_DIFF_DST, l->y},
        {l->w ? DNNL_ARG_DIFF_WEIGHTS : DNNL_ARG_WEIGHTS, l->w ? l->w : j->w},
        {DNNL_ARG_SCRATCHPAD, l->scratch},
    };
    return bad ? bad : dnnl_primitive_execute(j->p->chunk, l->stream, 4, args);
}

static dnnl_status_t run_chunk(thread_objects *l, const conv_call *j, int64_t chunk, int thread) {
    float *x = j->a.x + (size_t)chunk * j->x_size;
    if (j->p->pass != CONV_BACKWARD_DATA || !j->a.add) return thread_run(l, j, chunk, x);
    float *dx = j->dx + (size_t)thread * j->x_size;
    dnnl_status_t bad = thread_run(l, j, chunk, dx);
    for (size_t i = 0; i < j->x_size; i++) x[i] += dx[i];
    return bad;
}

/* block[0] += block[1] + block[2] + ..., in this order for every number. */
static void merge(const conv_call *j, size_t from, size_t to) {
    for (int64_t chunk = 1; chunk < j->chunks; chunk++) {
        const float *more = j->block + (size_t)chunk * j->block_size;
        for (size_t i = from; i < to; i++) j->block[i] += more[i];
    }
}

static dnnl_status_t run_chunks(const conv_call *j) {
    enum { MERGED = 2048 };
    int64_t merges = j->w || j->chunks == 1 ? 0 : (int64_t)(j->block_size + MERGED - 1) / MERGED;
    int worst = 0;
#pragma omp parallel num_threads(j->threads) reduction(max : worst)
    {
        thread_objects l = {0};
        int thread = omp_get_thread_num();
        omp_set_num_threads(1); /* for this region's task only */
        worst = thread_open(&l, j, thread);
#pragma omp for schedule(static) nowait
        for (int64_t i = 0; i < j->chunks; i++)
            if (!worst) worst = run_chunk(&l, j, i, thread);
        if (merges) {
#pragma omp barrier
#pragma omp for schedule(static) nowait
            for (int64_t i = 0; i < merges; i++) {
                size_t from = (size_t)i * MERGED, to = from + MERGED;
                merge(j, from, to < j->block_size ? to : j->block_size);
            }
        }
        thread_close(&l);
    }
    return (dnnl_status_t)worst;
}

static dnnl_status_t call_run(conv_call *j) {
    dnnl_status_t bad = dnnl_success;
    bool weights = j->p->pass == CONV_BACKWARD_WEIGHTS;
    if (!weights) bad = reorder(j, j->a.w, j->block);
    if (!bad && !weights) bad = dnnl_memory_create(&j->w, &j->p->block, j->c->engine, j->block);
    if (!bad) bad = run_chunks(j);
    if (j->w) dnnl_memory_destroy(j->w);
    if (bad || !weights) return bad;
    if (!j->a.add) return reorder(j, j->block, j->a.w);
    bad = reorder(j, j->block, j->plain);
    for (size_t i = 0; i < j->w_size; i++) j->a.w[i] += j->plain[i];
    return bad;
}

static sr_status run_plan(conv_plans *c, const plan *p, int threads, const conv_arrays *a,
                          int64_t chunks, sr_failure *why) {
    const conv_shape *s = &p->s;
    conv_call j = {.c = c, .p = p, .a = *a, .threads = threads, .chunks = chunks};
    j.x_size = (size_t)(s->images * s->height * s->width * s->in);
    j.y_size = (size_t)(s->images * s->out_height * s->out_width * s->out);
    j.w_size = (size_t)(s->out * s->kernel_h * s->kernel_w * s->in);
    j.block_size = aligned(dnnl_memory_desc_get_size(&p->block)) / sizeof(float);
    j.scratch_bytes = aligned(dnnl_memory_desc_get_size(&p->scratch));
    static char none;
    char *memory = scratch_memory_of(c->memory, call_layout(&j, &none), why);
    if (!memory) return SR_MEMORY;
    call_layout(&j, memory);
    dnnl_status_t bad = call_run(&j);
    return bad ? fail(bad, s, why) : SR_OK;
}

sr_status conv_dnnl(conv_plans *plans, int threads, conv_pass pass, const conv_shape *s,
                    const conv_arrays *a, bool *done, sr_failure *why) {
    int64_t chunks = s->images / CONV_CHUNK;
    conv_shape part = *s;
    const plan *whole = NULL, *rest = NULL;
    part.images = CONV_CHUNK;
    sr_status status = chunks ? plan_find(plans, pass, &part, &whole, why) : SR_OK;
    part.images = s->images % CONV_CHUNK;
    if (status == SR_OK && part.images) status = plan_find(plans, pass, &part, &rest, why);
    if (status != SR_OK) return status;
    *done = !(whole && !whole->usable) && !(rest && !rest->usable);
    if (!*done) return SR_OK;
    if (whole) status = run_plan(plans, whole, threads, a, chunks, why);
    if (status != SR_OK || !rest) return status;
    conv_arrays last = *a;
    int64_t before = chunks * CONV_CHUNK;
    last.x += before * s->height * s->width * s->in;
    last.y += before * s->out_height * s->out_width * s->out;
    if (pass == CONV_BACKWARD_WEIGHTS && whole) last.add = true;
    return run_plan(plans, rest, 1, &last, 1, why);
}
#endif
